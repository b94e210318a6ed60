// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Creates activation codes, and the URIs that contain them.
struct ActivationMaker {
  private let issuer: String
  private let pin: String
  private let hasher: KeyedHasher

  /// - Throws: `CommandError` if the server's address is not known yet.
  init(_ session: AdminSession) async throws {
    let configuration = try session.directory.configuration()
    let lastIssuer = try await session.read { try $0.issuer() }
    let ownName = configuration.port == 0 ? nil : configuration.issuer(onPort: configuration.port)
    guard let issuer = configuration.issuer ?? lastIssuer ?? ownName else {
      throw CommandError("the server's address is not known yet: set \"issuer\", or run \"token-server serve\" once")
    }
    self.issuer = issuer
    if Self.isOnThisMachine(issuer) {
      complain(
        "warning: the URI names \(issuer), which other machines do not reach; for tokens on other machines set "
          + "\"listen\" and \"issuer\" in \(session.directory.configurationFile)")
    }
    let certificate = session.directory.file(configuration.certificateFile)
    for warning in CertificateCheck.warnings(about: certificate, at: issuer, now: ServerClock.system.now()) {
      complain("warning: \(warning)")
    }
    pin = try ServerPin.read(certificate)
    hasher = session.hasher
  }

  private static func isOnThisMachine(_ issuer: String) -> Bool {
    let authority = issuer.dropFirst("https://".count)
    return ["localhost", "127.", "[::1]"].contains { authority.hasPrefix($0) }
  }

  func fleetURI(_ token: String) -> String { FleetURI(server: issuer, token: token, pins: [pin]).text }

  /// A new code: its digits, its URI, and the hash that the server stores.
  func make(_ form: ActivationCode.Form = .short) -> (digits: String, uri: String, hash: [UInt8]) {
    let code = ActivationCode.random(form)
    return (
      code.digits, ActivationURI(server: issuer, code: code, pins: [pin]).text,
      hasher.hash(code.digits, for: .activationCode)
    )
  }
}
