// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

@testable import ServerParsers

/// The output of a script of a custom authenticator; and the data of an authenticator for the built-in verifier, with
/// the same rules for its result.
func readScriptResult(_ bytes: [UInt8]) {
  judge(ScriptResult(parsing: bytes))
  for scheme in ServerConfiguration.Authenticator.SignatureScheme.allCases {
    for purpose in [.registration, .login] as [AuthenticatorChallenge.Purpose] {
      let challenge = AuthenticatorChallenge(
        for: purpose, issuer: "https://h", clientID: "C", profileID: "P", authenticator: "key", nonce: "n")
      let result = SignatureVerifier.result(of: bytes, String(decoding: bytes, as: UTF8.self), challenge, scheme)
      require(result.outcome != .accepted, "nothing is accepted without the private key")
      judge(result)
    }
  }
}

private func judge(_ result: ScriptResult) {
  require((2000...5999).contains(result.status), "a result has a status of the table")
  require(result.data.utf8.count <= ScriptResult.largestData, "accepted data keeps the limit")
  require(
    (result.registrationData ?? "").utf8.count <= ScriptResult.largestRegistrationData,
    "accepted registration data keeps the limit")
  _ = result.outcome
  require((try? JSON.decode(CustomInfo.self, from: JSON.encode(result.info))) == result.info, "it survives being sent")
}
