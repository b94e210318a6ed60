import ArgumentParser
import Boards
import MobileAuth

extension BoardCommand {
  struct Probe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List this machine's GPIO chips, their lines and its keypads, and propose a profile.",
      discussion: """
        Opens no line and no keypad. Which line a button is wired to nobody can see: look at the proposal before you use \
        it, as in

          approval-token board probe --toml > board.toml
          approval-token board check board.toml
        """)

    @Flag(help: "Print the proposed profile alone.")
    var toml = false
    @OptionGroup var json: JSONOption

    func validate() throws {
      if toml, json.isWanted { throw ValidationError("--toml and --json exclude each other") }
    }

    func run() async throws {
      try await reporting {
        let facts = BoardProbe.look()
        guard toml else {
          return json.print(facts) { facts in
            // Names come from devices.
            (facts.lines.map(\.forPeople) + [facts.profile.map { "\n\($0)" }].compactMap(\.self)).joined(
              separator: "\n")
          }
        }
        guard let profile = facts.profile else {
          throw CommandFailure(.unavailable, "there is no GPIO chip here with lines for a button and an LED")
        }
        print(profile, terminator: "")
      }
    }
  }
}
