import ArgumentParser
import GRDB

struct UserCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Users of the server.", subcommands: [Add.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Add a user.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "What portals call the user.")
    var user: String

    private struct Added: Encodable {
      var user: String
    }

    func run() async throws {
      let user = try validated(user, as: "a user")
      let nowMs = ServerClock.system.nowMs()
      let added = try await options.open().store.write {
        try $0.run("INSERT OR IGNORE INTO user (id, created_at_ms) VALUES (?, ?)", [user, nowMs])
      }
      guard added > 0 else { throw CommandFailure("the user \(user) exists already") }
      options.print(Added(user: user), "added the user \(user)")
    }
  }
}
