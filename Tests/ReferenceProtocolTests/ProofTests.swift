// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import Testing

@Suite(.timeLimit(.minutes(5))) struct ProofTests {
  private let key: P256PrivateKey
  private let url = "https://h/device/v1/pending"

  init() throws { key = try P256PrivateKey() }

  private func proof(method: String = "GET", token: String? = "t") throws -> String {
    try DPoPProof.make(method: method, url: url + "?a=b", nonce: "n", accessToken: token, issuedAt: 0, key: key)
  }

  @Test("A proof is for one request of one key") func aProofIsForOneRequestOfOneKey() throws {
    let verified = try DPoPProof(verifying: proof(), method: "GET", url: url + "?c=d", accessToken: "t")
    #expect(verified.key == JWK(key.publicKey))
    #expect(verified.nonce == "n")
    let again = try DPoPProof(verifying: proof(), method: "GET", url: url, accessToken: "t")
    #expect(again.identifier != verified.identifier)
  }

  @Test(
    "Another method URL or token is refused",
    arguments: [
      ("POST", "https://h/device/v1/pending", "t"), ("GET", "https://h/other", "t"),
      ("GET", "https://h/device/v1/pending", "u"),
    ])
  func anotherMethodURLOrTokenIsRefused(method: String, url: String, token: String) throws {
    let proof = try proof()
    #expect(throws: WireError.self) { try DPoPProof(verifying: proof, method: method, url: url, accessToken: token) }
  }

  @Test("A proof without the token is not a proof for it") func aProofWithoutTheTokenIsNotAProofForIt() throws {
    let proof = try proof(token: nil)
    #expect(throws: WireError.self) { try DPoPProof(verifying: proof, method: "GET", url: url, accessToken: "t") }
  }

  @Test(
    "A private key and critical extensions in the header are refused",
    arguments: [
      (#"{"typ":"dpop+jwt","alg":"ES256","jwk":JWK}"#, true),
      (#"{"typ":"dpop+jwt","alg":"ES256","jwk":JWK,"crit":["b64"],"b64":false}"#, false),
      (#"{"typ":"dpop+jwt","alg":"ES256","jwk":JWK,"crit":[]}"#, false),
      (#"{"typ":"dpop+jwt","alg":"ES256","jwk":JWK,"crit":null}"#, false),
      (#"{"typ":"dpop+jwt","alg":"ES256","jwk":PRIVATE}"#, false),
      (#"{"typ":"dpop+jwt","alg":"ES256","jwk":$NULL}"#, false),
    ]) func forbiddenMembers(header: String, isValid: Bool) throws
  {
    let jwk = String(decoding: JSON.encode(JWK(key.publicKey)), as: UTF8.self)
    let filled = header.replacing("JWK", with: jwk).replacing("PRIVATE", with: jwk.dropLast() + #","d":"AAAA"}"#)
      .replacing("$NULL", with: jwk.dropLast() + #","d":null}"#)
    let payload = Array(#"{"jti":"1","htm":"GET","htu":"\#(url)","iat":0,"nonce":"n"}"#.utf8)
    let proof = try JWS.sign(header: Array(filled.utf8), payload: payload, key: key)
    let verified = try? DPoPProof(verifying: proof, method: "GET", url: url, accessToken: nil)
    #expect((verified != nil) == isValid)
  }

  @Test("Every flipped letter is noticed") func everyFlippedLetterIsNoticed() throws {
    let proof = Array(try proof())
    for index in stride(from: 0, to: proof.count, by: 7) where proof[index] != "." {
      var changed = proof
      changed[index] = changed[index] == "A" ? "B" : "A"
      #expect(throws: (any Error).self) {
        try DPoPProof(verifying: String(changed), method: "GET", url: url, accessToken: "t")
      }
    }
  }

  @Test("Nonsense is refused", arguments: ["", ".", "..", "a.b.c", "eyJ9.e30.", String(repeating: "A", count: 20_000)])
  func nonsenseIsRefused(text: String) {
    #expect(throws: WireError.self) { try DPoPProof(verifying: text, method: "GET", url: url, accessToken: nil) }
  }

  @Test(
    "An assertion holds for ten minutes of skew",
    arguments: [
      (0, 0, nil), (599, 0, nil), (-599, 0, nil), (601, 0, ClientAssertion.VerificationError.clockWrong),
      (-601, 0, .clockWrong), (-1_795_000_000, 0, .clockWrong),
    ] as [(Int64, Int, ClientAssertion.VerificationError?)])
  func anAssertionHoldsForTenMinutesOfSkew(skew: Int64, _: Int, refusal: ClientAssertion.VerificationError?) throws {
    let now: Int64 = 1_795_219_200
    let assertion = try ClientAssertion.make(clientID: "C", audience: "https://h", now: now + skew, key: key)
    #expect(ClientAssertion.claimedClientID(assertion) == "C")
    func verify() throws(ClientAssertion.VerificationError) -> String {
      try ClientAssertion.verify(assertion, clientID: "C", audience: "https://h", now: now, key: key.publicKey)
    }
    if let refusal { #expect(throws: refusal) { try verify() } } else { #expect(try !verify().isEmpty) }
  }

  @Test(
    "An assertion with critical extensions is refused",
    arguments: [("", true), (#","crit":["b64"]"#, false), (#","crit":null"#, false)])
  func criticalExtensions(member: String, isValid: Bool) throws {
    let claims = #"{"iss":"C","sub":"C","aud":"https://h","jti":"1","iat":0,"exp":60}"#
    let header = #"{"alg":"ES256""# + member + "}"
    let assertion = try JWS.sign(header: Array(header.utf8), payload: Array(claims.utf8), key: key)
    let verified = try? ClientAssertion.verify(
      assertion, clientID: "C", audience: "https://h", now: 0, key: key.publicKey)
    #expect((verified != nil) == isValid)
  }

  @Test("An assertion is for one server from one client") func anAssertionIsForOneServerFromOneClient() throws {
    let assertion = try ClientAssertion.make(clientID: "C", audience: "https://h", now: 0, key: key)
    let other = try P256PrivateKey().publicKey
    for (client, audience, key) in [
      ("D", "https://h", key.publicKey), ("C", "https://i", key.publicKey), ("C", "https://h", other),
    ] {
      #expect(throws: ClientAssertion.VerificationError.self) {
        try ClientAssertion.verify(assertion, clientID: client, audience: audience, now: 0, key: key)
      }
    }
  }
}
