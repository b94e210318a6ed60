// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing
import TokenServerCore

/// The built-in verifier of authenticators that sign the challenge.
@Suite("Signatures of security keys and badges", .timeLimit(.minutes(5)), .mayBlock) struct SignatureVerifierTests {
  private typealias Scheme = ServerConfiguration.Authenticator.SignatureScheme

  private let key: P256PrivateKey
  private var point: String { ([4] + key.publicKey.x + key.publicKey.y).base64 }

  init() throws { key = try P256PrivateKey() }

  private func challenge(_ purpose: AuthenticatorChallenge.Purpose, nonce: String = "n") -> AuthenticatorChallenge {
    AuthenticatorChallenge(
      for: purpose, issuer: "https://auth.example.org:8443", clientID: "C", profileID: "PROF01", authenticator: "key",
      nonce: nonce)
  }

  private func register(_ data: String, _ scheme: Scheme) -> ScriptResult {
    SignatureVerifier.result(of: Array(data.utf8), nil, challenge(.registration), scheme)
  }

  private func logIn(_ data: String, _ registration: String?, _ scheme: Scheme) -> ScriptResult {
    SignatureVerifier.result(of: Array(data.utf8), registration, challenge(.login), scheme)
  }

  private func authenticatorData(_ host: String = "auth.example.org", flags: UInt8 = 1) -> [UInt8] {
    SHA256.hash(Array(host.utf8)) + [flags, 0, 0, 0, 1]
  }

  /// The data of a device, for one scheme.
  private func data(
    _ challenge: AuthenticatorChallenge, badge: Bool, by signer: P256PrivateKey? = nil, _ data: [UInt8]? = nil,
    registers: Bool = false
  ) throws -> String {
    let data = data ?? authenticatorData()
    let signed = badge ? challenge.hashedBytes : data + challenge.digest
    let signature = try (signer ?? key).derSignature(for: signed)
    let more = badge ? "" : #","authenticator_data":"\#(data.base64)""#
    return #"{"signature":"\#(signature.base64)"\#(more)\#(registers ? #","public_key":"\#(point)""# : "")}"#
  }

  @Test("A registration proves its key, and later uses must be signed with it", arguments: [true, false])
  func uses(badge: Bool) throws {
    let scheme: Scheme = badge ? .badge : .securityKey
    let first = try data(challenge(.registration), badge: badge, registers: true)
    let registered = register(first, scheme)
    #expect(registered.status == 2000)
    let registration = try #require(registered.registrationData)
    #expect(registration == #"{"public_key":"\#(point)"}"#)

    #expect(logIn(try data(challenge(.login), badge: badge), registration, scheme).status == 2000)
    // Of another use, another key, and no signature at all.
    for wrong in [
      try data(challenge(.login, nonce: "m"), badge: badge), try data(challenge(.registration), badge: badge),
      try data(challenge(.login), badge: badge, by: P256PrivateKey()), #"{"signature":"AAAA"}"#, #"{"signature":""}"#,
      #"{"signature":"?"}"#, "{}", "", "[]", "x",
    ] {
      let result = logIn(wrong, registration, scheme)
      #expect(result.status == 4000 && !result.data.isEmpty, "\(wrong)")
    }
  }

  @Test("A security key must say that it was touched, and for this server") func authenticatorDataChecks() throws {
    func result(_ data: [UInt8]) throws -> ScriptResult {
      register(try self.data(challenge(.registration), badge: false, data, registers: true), .securityKey)
    }
    #expect(try result(authenticatorData()).status == 2000)
    #expect(try result(authenticatorData(flags: 0x04)).data == "the key was not touched")
    #expect(try result(authenticatorData("auth.example.org:8443")).data == "it is for another server")
    #expect(try result(Array(authenticatorData().dropLast())).data == "there is no authenticator data")
    #expect(try result([]).data == "there is no authenticator data")
  }

  @Test("A registration needs a point of P-256", arguments: ["", "AAAA", [UInt8](repeating: 4, count: 65).base64])
  func points(point: String) throws {
    let data = #"{"signature":"AAAA","public_key":"\#(point)"}"#
    let result = register(data, .badge)
    #expect(result.status == 4000 && result.data == "there is no public key on P-256")
  }

  /// What a script of the examples says.
  private func script(_ name: String, _ challenge: AuthenticatorChallenge, data: String, _ registration: String?)
    throws -> ScriptResult
  {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let call = [
      "challenge": challenge.digest.base64URL, "iss": challenge.issuer, "data": Array(data.utf8).base64,
      "registration_data": registration,
    ]
    let input = try JSONEncoder().encode(call.compactMapValues(\.self))
    let output = try run(root.appending(path: "examples/\(name)").path, [], input: Array(input))
    return ScriptResult(parsing: output.bytes)
  }

  @Test("The scripts of the examples judge as the built-in verifier", arguments: [true, false])
  func examples(badge: Bool) throws {
    let folder = badge ? "badge" : "security-key"
    let (first, second) = (challenge(.registration), challenge(.login))
    let right = try data(first, badge: badge, registers: true)
    let registered = try script("\(folder)/register", first, data: right, nil)
    #expect(registered.status == 2000 && registered.registrationData == point)
    #expect(try script("\(folder)/register", second, data: right, nil).status == 4000)
    let login = try data(second, badge: badge)
    #expect(try script("\(folder)/authenticate", second, data: login, point).status == 2000)
    let other = try data(second, badge: badge, by: P256PrivateKey())
    #expect(try script("\(folder)/authenticate", second, data: other, point).status == 4000)
  }

  @Test("A registration that cannot be read any more is a fault of the server", arguments: [nil, "", "{}", "x"])
  func lostRegistration(registration: String?) throws {
    let data = try data(challenge(.login), badge: true)
    #expect(logIn(data, registration, .badge).outcome == .notRun)
  }
}
