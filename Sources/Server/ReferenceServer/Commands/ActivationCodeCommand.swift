// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import TokenServerCore
import TokenServerStore

struct ActivationCodeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "activation-code", abstract: "Create a one-time code that activates a user on a token.",
    discussion:
      "The code is valid for ten minutes. The URI contains it for scanners, files and `approval-token enroll`.")

  /// The lifetime of a code.
  static let lifetime = Duration.seconds(600)

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
    let expiresAt = ServerClock.system.now() + Self.lifetime
    try await session.write { [user] in try Self.insert(hash, of: user, until: expiresAt, into: $0) }
    let made = Made(user: user, code: digits, uri: uri, expiresIn: Self.lifetime.components.seconds)
    try options.print(
      made, "code: \(made.code)\nuri: \(made.uri)\nvalid for \(made.expiresIn / 60) minutes")
  }

  /// - Throws: `CommandError`, without a change, if there is no such user.
  static func insert(_ hash: [UInt8], of user: String, until end: Timestamp, into database: Database) throws {
    guard try database.hasUser(UserID(user)) else {
      throw CommandError("there is no user \(user); add one with \"token-server user add\"")
    }
    try database.insertActivationCode(hash, userID: UserID(user), expiresAt: end)
  }
}
