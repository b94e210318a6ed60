// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import TokenServerCore
import TokenServerStore

struct ActivationCodeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "activation-code", abstract: "Manage the one-time codes that activate users on tokens.",
    discussion: "With a user in place of a subcommand it is `add`.",
    subcommands: [Add.self, List.self, Delete.self], defaultSubcommand: Add.self)

  /// The lifetime of a code.
  static let lifetime = Duration.seconds(600)

  /// - Throws: `CommandError`, without a change, if there is no such user.
  static func insert(_ hash: [UInt8], of user: String, until end: Timestamp, into database: Database) throws {
    guard try database.hasUser(UserID(user)) else {
      throw CommandError("there is no user \(user); add one with \"token-server user add\"")
    }
    try database.insertActivationCode(hash, userID: UserID(user), expiresAt: end)
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add", abstract: "Create a one-time code that activates a user on a token.",
      discussion:
        "The code is valid for ten minutes. The URI contains it for scanners, files and `approval-token enroll`.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The user to activate.")
    var user: String

    private struct Made: Encodable {
      var user: String
      var code: String
      var uri: String
      /// The lifetime in seconds.
      var expiresIn: Int64

      enum CodingKeys: String, CodingKey {
        case user, code, uri
        case expiresIn = "expires_in"
      }
    }

    func run() async throws {
      let session = try await options.open()
      let (digits, uri, hash) = try await ActivationMaker(session).make()
      let lifetime = ActivationCodeCommand.lifetime
      let expiresAt = ServerClock.system.now() + lifetime
      try await session.write { [user] in
        try ActivationCodeCommand.insert(hash, of: user, until: expiresAt, into: $0)
      }
      let made = Made(user: user, code: digits, uri: uri, expiresIn: lifetime.components.seconds)
      try options.print(
        made, "code: \(made.code)\nuri: \(made.uri)\nvalid for \(made.expiresIn / 60) minutes")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the users with codes that have not expired, also those of \"fleet\".",
      discussion: "The server stores only hashes of the codes.")

    @OptionGroup var options: CommonOptions

    private struct Entry: Encodable {
      var user: String
      /// The device that has used the code; only it can use it again, for an interrupted enrollment.
      var deviceID: String?
      var expiresAtMs: Int64

      enum CodingKeys: String, CodingKey {
        case user
        case deviceID = "device_id"
        case expiresAtMs = "expires_at_ms"
      }

      var text: String {
        "\(user)  until \(moment(Timestamp(expiresAtMs))), \(deviceID.map { "used by \($0)" } ?? "unused")"
      }
    }

    func run() async throws {
      let now = ServerClock.system.now()
      let (codes, unreadable) = try await options.open().read {
        (try $0.activationCodes(now: now), try $0.unreadableRows(of: ["activation_code"]))
      }
      unreadable.forEach(complain)
      let entries = codes.map { code, expiresAt in
        Entry(user: code.userID.text, deviceID: code.clientID?.text, expiresAtMs: expiresAt.milliseconds)
      }
      try options.print(entries, entries.isEmpty ? "no activation codes" : entries.map(\.text).joined(separator: "\n"))
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete", abstract: "Delete all codes of a user, or of all users; they are invalid at once.",
      discussion: "Enrollments that are complete stay.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The user whose codes are deleted.")
    var user: String?
    @Flag(help: "Delete the codes of all users.")
    var all = false

    private struct Deleted: Encodable {
      /// Nil for all users.
      var user: String?
      /// The number of codes.
      var deleted: Int
    }

    func validate() throws {
      guard (user != nil) != all else { throw ValidationError("name a user, or use --all") }
    }

    func run() async throws {
      let session = try await options.open()
      if let user { try await session.requireUser(user) }
      let count = try await session.write { [user] in try $0.deleteActivationCodes(of: user.map { UserID($0) }) }
      try options.print(Deleted(user: user, deleted: count), "deleted activation codes: \(count)")
    }
  }
}
