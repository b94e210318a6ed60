import ArgumentParser
import GRDB

struct UserCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Users of the server.", subcommands: [Add.self, Resume.self])

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

  struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Let portals ask a user again who said \"not me\".",
      discussion: "\"transaction list\" shows whose requests are held off, and until when.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "What portals call the user.")
    var user: String

    private struct Resumed: Encodable {
      var user: String
      var wasHeld: Bool

      enum CodingKeys: String, CodingKey {
        case user
        case wasHeld = "was_held"
      }
    }

    func run() async throws {
      let nowMs = ServerClock.system.nowMs()
      let wasHeld = try await options.open().store.write { [user] in try $0.endHold(of: user, nowMs: nowMs) }
      options.print(
        Resumed(user: user, wasHeld: wasHeld),
        wasHeld ? "portals may ask \(user) again" : "portals may ask \(user); nothing was held off")
    }
  }
}
