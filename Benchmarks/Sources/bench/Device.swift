// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol

/// A registered device: makes the requests of a token, each with its own proof.
final class Device {
  let site: Site
  let key: P256PrivateKey
  private(set) var clientID = ""
  private(set) var accessToken = ""

  init(at site: Site) throws {
    self.site = site
    key = try P256PrivateKey()
  }

  // MARK: Registration

  /// - Parameter credential: an activation code or a fleet token.
  func registration(_ credential: String) -> [UInt8] {
    let capabilities = ApprovalCapabilities(display: .none, keypad: false, button: true, led: .rgb)
    let body = RegistrationRequest(
      clientName: "bench", softwareID: "bench", softwareVersion: "0.1.0", key: JWK(key.publicKey),
      capabilities: capabilities)
    return site.request(
      "POST", "/oauth/register", [("Authorization", "Bearer \(credential)"), ("Content-Type", "application/json")],
      JSON.encode(body))
  }

  func takeRegistration(_ response: Response) {
    clientID = site.decode(RegistrationResponse.self, response, "register")?.clientID ?? ""
  }

  /// - Parameter form: additional form fields, encoded.
  func tokenRequest(grant: String = Grant.clientCredentials, form: String = "") -> [UInt8] {
    guard let assertion = try? ClientAssertion.make(clientID: clientID, audience: site.issuer, now: now, key: key)
    else { fatalError("signing failed") }
    func escaped(_ text: String) -> String { text.split(separator: ":").joined(separator: "%3A") }
    return site.request(
      "POST", "/oauth/token",
      [
        ("DPoP", proof("POST", "/oauth/token", nil)), ("Content-Type", "application/x-www-form-urlencoded"),
      ],
      Array(
        """
        grant_type=\(escaped(grant))&client_id=\(clientID)&client_assertion_type=\(escaped(Grant.clientAssertionType))\
        &client_assertion=\(assertion)\(form)
        """.utf8))
  }

  func takeToken(_ response: Response) {
    accessToken = site.decode(AccessTokenResponse.self, response, "token")?.accessToken ?? ""
  }

  // MARK: Calls

  /// The pending list with the message of the newest request.
  static let list = "/device/v1/pending?include=message"

  /// The header fields that authenticate the device.
  func proof(_ method: String, _ path: String) -> [(String, String)] {
    [("Authorization", "DPoP \(accessToken)"), ("DPoP", proof(method, path, accessToken))]
  }

  func call(_ method: String, _ path: String, _ body: [UInt8] = [], _ fields: [(String, String)] = []) -> [UInt8] {
    let type = body.isEmpty ? [] : [("Content-Type", "application/json")]
    return site.request(method, path, proof(method, path) + fields + type, body)
  }

  var eventStream: [UInt8] { call("GET", "/device/v1/events", [], [("Accept", "text/event-stream")]) }

  private func proof(_ method: String, _ path: String, _ accessToken: String?) -> String {
    guard
      let proof = try? DPoPProof.make(
        method: method, url: site.issuer + path, nonce: site.nonce, accessToken: accessToken, issuedAt: now, key: key)
    else { fatalError("signing failed") }
    return proof
  }

  /// Unix seconds: client and server share the machine's clock.
  private var now: Int64 { Int64(Date().timeIntervalSince1970) }
}
