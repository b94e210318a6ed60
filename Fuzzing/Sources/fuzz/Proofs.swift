// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

@testable import ServerParsers

/// Proofs that devices send to the token server: DPoP proofs with its nonces, client assertions, knowledge assertions.
/// The harness signs what a device could sign, so that claims are reached, and passes on unsigned data unchanged.
func readProof(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 6)
  switch input.choice {
  case 0: readToken(input.text)
  case 1: judgeProof(signed(#"{"alg":"ES256","jwk":\#(jwk),"typ":"dpop+jwt"}"#, input.bytes))
  case 2: judgeProof(signed(input.text, Array(proofClaims.utf8)))
  case 3: judgeClient(signed(#"{"alg":"ES256","typ":"JWT"}"#, input.bytes))
  case 4: judgeKnowledge(input.bytes)
  default: _ = nonces.isFresh(input.bytes.base64URL)
  }
}

private let now: Int64 = 1_795_253_339
private let url = "https://s/oauth/token"
private let nonces = DPoPNonces { .seconds(1000) }
private let jwk = String(decoding: JSON.encode(JWK(Keys.device.publicKey)), as: UTF8.self)
private let proofClaims = #"{"htm":"POST","htu":"https://s/oauth/token","iat":1,"jti":"j"}"#

private func signed(_ header: String, _ payload: [UInt8]) -> String {
  orTrap { try JWS.sign(header: Array(header.utf8), payload: payload, key: Keys.device) }
}

/// A token as an unauthenticated client can send it.
private func readToken(_ text: String) {
  judgeProof(text)
  judgeClient(text)
  _ = nonces.isFresh(text)
  _ = try? KnowledgeAssertion(parsing: text, clientID: "C", profileID: "P", audience: url, now: now)
}

private func judgeProof(_ text: String) {
  guard let proof = try? DPoPProof(verifying: text, method: "POST", url: url, accessToken: nil) else { return }
  _ = proof.nonce.map(nonces.isFresh)
  _ = proof.key.thumbprint
}

private func judgeClient(_ text: String) {
  guard let client = ClientAssertion.claimedClientID(text) else { return }
  _ = try? ClientAssertion.verify(
    text, clientID: client, audience: "https://s", now: now, key: Keys.device.publicKey)
}

private func judgeKnowledge(_ claims: [UInt8]) {
  let signature = [UInt8](repeating: 0, count: 64).base64URL
  let text = "\(Array(#"{"alg":"EdDSA","typ":"JWT"}"#.utf8).base64URL).\(claims.base64URL).\(signature)"
  _ = try? KnowledgeAssertion(parsing: text, clientID: "C", profileID: "P", audience: url, now: now, nonce: nil)
}
