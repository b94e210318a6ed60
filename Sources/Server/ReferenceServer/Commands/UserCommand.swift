// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import TokenServerCore
import TokenServerStore

struct UserCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Manage users of the server.",
    subcommands: [Add.self, Delete.self, Resume.self, List.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "add", abstract: "Add a user.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The user id that portals use.")
    var user: String

    private struct Added: Encodable {
      var user: String
    }

    func run() async throws {
      let user = try validated(user, as: "a user")
      let now = ServerClock.system.now()
      let isAdded = try await options.open().write { try $0.insertUser(UserID(user), now: now) }
      guard isAdded else { throw CommandError("the user \(user) already exists") }
      try options.print(Added(user: user), "added the user \(user)")
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete", abstract: "Delete a user and deregister the user from all devices, which are notified.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The user id that portals use.")
    var user: String

    private struct Deleted: Encodable {
      var user: String
    }

    func run() async throws {
      let session = try await options.open()
      let now = ServerClock.system.now()
      try await session.requireUser(user)
      try await session.change { [user] in try $0.deleteUser(UserID(user), now: now) }
      try options.print(Deleted(user: user), "deleted the user \(user)")
    }
  }

  struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "resume", abstract: "End the hold on requests for a user who answered \"not me\".",
      discussion: "\"transaction list\" shows the users on hold and the end of each hold.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The user id that portals use.")
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
      let now = ServerClock.system.now()
      let session = try await options.open()
      try await session.requireUser(user)
      let wasHeld = try await session.write { [user] in try $0.endHold(of: UserID(user), now: now) }
      try options.print(
        Resumed(user: user, wasHeld: wasHeld),
        wasHeld ? "the hold on \(user) has ended" : "\(user) was not on hold")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the users, each with the number of devices.")

    @OptionGroup var options: CommonOptions

    private struct Entry: Encodable {
      var user: String
      /// The number of devices on which the user is activated.
      var devices: Int
      var createdAtMs: Int64

      enum CodingKeys: String, CodingKey {
        case user, devices
        case createdAtMs = "created_at_ms"
      }

      var text: String { "\(user)  devices: \(devices), added \(moment(Timestamp(createdAtMs)))" }
    }

    func run() async throws {
      let (users, unreadable) = try await options.open().read {
        (try $0.users(), try $0.unreadableRows(of: ["user"]))
      }
      unreadable.forEach(complain)
      let entries = users.map {
        Entry(user: $0.id.text, devices: $0.devices, createdAtMs: $0.createdAt.milliseconds)
      }
      try options.print(entries, entries.isEmpty ? "no users" : entries.map(\.text).joined(separator: "\n"))
    }
  }
}
