// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets
import Testing

@testable import ReferenceProtocol

/// Keys and proofs of authenticators, and values of newer peers.
@Suite(.timeLimit(.minutes(5))) struct AuthenticatorProtocolTests {
  private let token = SecretBytes(copying: [UInt8](repeating: 3, count: 32))

  private func key(_ authenticator: String?) throws -> KnowledgeKey {
    try KnowledgeKey(refreshToken: token, clientID: "C", profileID: "P", authenticator: authenticator)
  }

  @Test("Each authenticator has its own key, also for equal tokens") func keys() throws {
    let keys = try [nil, "finger", "badge", ""].map { try key($0).publicKey.bytes }
    #expect(Set(keys).count == 4)
  }

  @Test("A method of a newer server keeps its name") func methods() throws {
    for method in ["push", "push_with_pin", "push_with_fingerprint", "push_with_custom_authenticator"] {
      let known = try #require(ApprovalRequest.Method(known: method))
      #expect(known == ApprovalRequest.Method(rawValue: method) && known.rawValue == method)
    }
    let newer = try JSON.decode([ApprovalRequest.Method].self, from: Array(#"["push_with_iris",""]"#.utf8))
    #expect(newer == [.other("push_with_iris"), .other("")])
    #expect(JSON.encode(newer) == Array(#"["push_with_iris",""]"#.utf8))
    #expect(ApprovalRequest.Method(known: "push_with_iris") == nil)
  }

  /// Fails if a request makes a device ask as often as it repeats an authenticator.
  @Test("A request names each alternative once, and no more authenticators than the bound") func alternatives() {
    var request = ApprovalRequest(
      iss: "s", clientID: "C", profileID: "P", transactionID: "T", type: "login", method: .pushWithCustomAuthenticator,
      message: nil, pushMessage: nil, nonce: "n", sentAtMs: 1, expiresInMs: 1)
    func alternative(_ authenticator: String) -> ApprovalRequest.Alternative {
      .init(authenticator: authenticator, method: .pushWithCustomAuthenticator)
    }
    request.authenticator = "key"
    let copies = [ApprovalRequest.Alternative](repeating: alternative("badge"), count: 300)
    request.alternatives = [alternative("key")] + copies
    #expect(request.authenticators == [alternative("key"), alternative("badge")])
    let others = (1...300).map { alternative("a\($0)") }
    request.alternatives = others
    #expect(request.authenticators.count == ApprovalRequest.mostAuthenticators)
    #expect(request.authenticators == [alternative("key")] + others.prefix(ApprovalRequest.mostAuthenticators - 1))
  }

  private var claim: AuthenticatorClaim {
    AuthenticatorClaim(
      nonce: [UInt8](repeating: 1, count: 32), requestSHA256: [UInt8](repeating: 2, count: 32), decision: .accept,
      authenticator: "badge", data: [9])
  }

  @Test("A proof covers nonce, request, decision, authenticator and data") func proof() throws {
    let key = try key("badge")
    let proof = try key.proof(claim)
    #expect(try claim.isProved(by: proof, key.publicKey))
    let changes: [(inout AuthenticatorClaim) -> Void] = [
      { $0.nonce[0] = 0 }, { $0.requestSHA256[0] = 0 }, { $0.decision = .deny }, { $0.authenticator = "badg" },
      { $0.data = [] }, { $0.nonce = [] }, { $0.requestSHA256.append(0) },
    ]
    for change in changes {
      var other = claim
      change(&other)
      #expect(try !other.isProved(by: proof, key.publicKey))
    }
    #expect(try !claim.isProved(by: proof, self.key("finger").publicKey))
    // A proof of the PIN's form is none.
    let pin = try key.proof(ApprovalClaim(nonce: claim.nonce, requestSHA256: claim.requestSHA256, decision: .accept))
    #expect(try !claim.isProved(by: pin, key.publicKey))
  }

  /// Fails if a signature for one use counts for another one, or if a script could not compute the challenge.
  @Test("A challenge is of one use only") func challenge() {
    var challenge = AuthenticatorChallenge(
      for: .push, issuer: "https://h", clientID: "C", profileID: "P", authenticator: "badge", nonce: "n")
    challenge.transactionID = "t"
    challenge.decision = "accept"
    challenge.requestSHA256 = "r"
    challenge.messageSHA256 = AuthenticatorChallenge.digest(ofMessage: nil)
    #expect(challenge.messageSHA256 == "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU")
    let text = """
      approval-token/authenticator/v1
      push
      https://h
      C
      P
      badge
      n
      t
      accept
      r
      47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU
      """
    #expect(challenge.digest == SHA256.hash(Array(text.utf8)))
    let changes: [(inout AuthenticatorChallenge) -> Void] = [
      { $0.purpose = .login }, { $0.issuer = "https://g" }, { $0.clientID = "D" }, { $0.profileID = "Q" },
      { $0.authenticator = "key" }, { $0.nonce = "m" }, { $0.transactionID = "u" }, { $0.decision = "deny" },
      { $0.requestSHA256 = "s" }, { $0.messageSHA256 = AuthenticatorChallenge.digest(ofMessage: "pay") },
    ]
    let others = changes.map { change in
      var other = challenge
      change(&other)
      return other.digest
    }
    #expect(Set(others + [challenge.digest]).count == changes.count + 1)
  }

  @Test(
    "The host of an issuer has no scheme, port or path",
    arguments: [
      ("https://auth.example.org", "auth.example.org"), ("https://auth.example.org:8443", "auth.example.org"),
      ("https://h:1/p:2", "h"), ("https://[::1]:8443", "[::1]"), ("", ""), ("https", ""), ("https://", ""),
    ])
  func host(issuer: String, host: String) {
    #expect(AuthenticatorChallenge.host(ofIssuer: issuer) == host)
  }

  @Test("An assertion names its authenticator and the hash of its data") func assertion() throws {
    let key = try key("badge")
    let text = try key.assertion(
      KnowledgeAssertion.Claims(
        clientID: "C", profileID: "P", audience: "https://s", identifier: "j", now: 1000, authenticator: "badge",
        dataSHA256: "h"))
    func parsed(_ authenticator: String?, _ data: String?) -> Bool {
      let parsed = try? KnowledgeAssertion(
        parsing: text, clientID: "C", profileID: "P", audience: "https://s", now: 1000, authenticator: authenticator,
        dataSHA256: data)
      return parsed != nil
    }
    #expect(parsed("badge", "h"))
    #expect(!parsed(nil, "h") && !parsed("finger", "h") && !parsed("badge", nil) && !parsed("badge", "i"))
  }

  @Test("Values of a newer peer are decoded as unknown") func newerPeers() throws {
    func decoded<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
      try JSON.decode(type, from: Array(text.utf8))
    }
    let entry = #"{"identifier":"x","name":"n","type":"face","registered":true,"supported":true}"#
    #expect(try decoded(AuthenticatorEntry.self, entry).type == .other)
    #expect(try decoded(ApprovalAnswer.Gesture.self, #"{"kind":"nod","held_ms":1}"#).kind == .other)
    #expect(try decoded(DeviceEvent.self, #"{"kind":"authenticator-lost"}"#).kind == .resync)
    let notice = #"{"v":1,"kind":"revocation","iss":"s","client_id":"C","profile_id":"P","scope":"keys","layer":"x"}"#
    #expect(try decoded(RevocationNotice.self, notice).layer == .other)
  }

  @Test("Messages of earlier peers are read") func earlierPeers() throws {
    let configuration = """
      {"transports":["sse"],"openpgp_profiles":[],"minimum_software_version":"0","pin_required":false,"server_time_ms":1}
      """
    #expect(try JSON.decode(DeviceConfiguration.self, from: Array(configuration.utf8)).authenticators == nil)
    let notice = #"{"v":1,"kind":"revocation","iss":"s","client_id":"C","profile_id":"P","scope":"keys"}"#
    #expect(try JSON.decode(RevocationNotice.self, from: Array(notice.utf8)).layer == nil)
  }
}
