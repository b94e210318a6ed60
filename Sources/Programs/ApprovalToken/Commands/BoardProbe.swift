// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Boards
import MobileAuth

extension BoardCommand {
  struct Probe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List this machine's GPIO chips, their lines and its keypads, and propose a profile.",
      discussion: """
        Opens no line and no keypad. Software cannot detect which line a button is wired to: check the proposal before \
        you use it:

          approval-token board probe --toml > board.toml
          approval-token board check board.toml
        """)

    @Flag(help: "Print only the proposed profile.")
    var toml = false
    @OptionGroup var json: JSONOption

    func validate() throws {
      if toml, json.isWanted { throw ValidationError("--toml and --json exclude each other") }
    }

    func run() async throws {
      try await reporting(json) {
        let facts = BoardProbe.look()
        guard toml else {
          return json.print(facts) { facts in
            // The names come from devices and are not trusted.
            (facts.lines.map(\.sanitized) + [facts.profile.map { "\n\($0)" }].compactMap(\.self)).joined(
              separator: "\n")
          }
        }
        guard let profile = facts.profile else {
          throw CommandError(.unavailable, "no GPIO chip with lines for a button and an LED was found")
        }
        print(profile, terminator: "")
      }
    }
  }
}
