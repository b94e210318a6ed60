// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ReferenceProtocol
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
    let session = try options.open()
    let configuration = try session.directory.configuration()
    let (exists, lastIssuer) = try await session.store.read { [user] database in
      (try database.hasUser(UserID(user)), try database.issuer())
    }
    guard exists else { throw CommandError("there is no user \(user); add one with \"token-server user add\"") }
    let ownName = configuration.port == 0 ? nil : configuration.issuer(onPort: configuration.port)
    guard let issuer = configuration.issuer ?? lastIssuer ?? ownName else {
      throw CommandError("the server's address is not known yet: set \"issuer\", or run \"token-server serve\" once")
    }
    let code = ActivationCode.random()
    let hash = session.hasher.hash(code.digits, for: .activationCode)
    let expiresAt = ServerClock.system.now() + Self.lifetime
    try await session.store.write { [user] in
      try $0.insertActivationCode(hash, userID: UserID(user), expiresAt: expiresAt)
    }
    let pin = try ServerPin.read(session.directory.file(configuration.certificateFile))
    let made = Made(
      user: user, code: code.digits, uri: ActivationURI(server: issuer, code: code, pins: [pin]).text,
      expiresIn: Self.lifetime.components.seconds)
    options.print(
      made, "code: \(made.code)\nuri: \(made.uri)\nvalid for \(made.expiresIn / 60) minutes")
  }
}
