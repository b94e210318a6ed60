// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import OpenPGP
import ReferenceProtocol
import Secrets

extension FakeServer {
  static let authenticators = "/profiles/PROFIL/authenticators"
  static let registrationID = "00000000-0000-4000-8000-00000000000a"

  /// Answers requests for the list of authenticators.
  func list(_ entries: (id: String, type: AuthenticatorKind, isRegistered: Bool)...) {
    let entries = entries.map { entry in
      AuthenticatorEntry(
        identifier: entry.id, name: "n", type: entry.type, registered: entry.isRegistered, supported: true)
    }
    let body = JSON.encode(AuthenticatorList(authenticators: entries))
    on(Self.authenticators) { _ in HTTPResponse(status: 200, body: body) }
  }

  /// Answers a registration with the token, and its activation with this response.
  func acceptRegistration(of token: SecretBytes, as id: String = "number", activation: HTTPResponse) {
    let signer = server
    on("\(Self.authenticators)/\(id)/registrations") { request in
      guard let order = try? JSON.decode(AuthenticatorRegistrationRequest.self, from: request.body),
        let certificate = try? OpenPGPCertificate(parsing: bytes(base64: order.ephemeralCertificate) ?? []),
        let sealed = try? signer.seal(token.withExposedSecret { Array($0) }, to: certificate)
      else { return HTTPResponse(status: 400) }
      let body = AuthenticatorRegistration(
        registrationID: Self.registrationID, sealedToken: sealed.base64,
        serverCertificate: signer.certificate.bytes.base64, expiresInMs: 600_000, customInfo: nil)
      return HTTPResponse(status: 201, body: JSON.encode(body))
    }
    on("\(Self.authenticators)/\(id)/registrations/\(Self.registrationID)/activation") { _ in activation }
  }
}
