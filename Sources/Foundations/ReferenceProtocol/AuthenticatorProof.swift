// SPDX-License-Identifier: Apache-2.0
package import Cryptography

/// The data that `authenticator_proof` signs: the exact request, its current nonce, the decision, the authenticator,
/// and the data for its script.
package struct AuthenticatorClaim: Sendable, Equatable {
  /// The maximum size of `custom_data`, decoded.
  package static let largestData = 4096

  /// The request's current nonce, 32 bytes.
  package var nonce: [UInt8]
  /// SHA-256 of the exact decrypted request, 32 bytes.
  package var requestSHA256: [UInt8]
  package var decision: ApprovalAnswer.Decision
  /// The identifier.
  package var authenticator: String
  /// Empty for a biometric authenticator.
  package var data: [UInt8]

  package init(
    nonce: [UInt8], requestSHA256: [UInt8], decision: ApprovalAnswer.Decision, authenticator: String, data: [UInt8]
  ) {
    self.nonce = nonce
    self.requestSHA256 = requestSHA256
    self.decision = decision
    self.authenticator = authenticator
    self.data = data
  }

  /// `"approval-authenticator/v1" ‖ nonce ‖ request hash ‖ SHA-256(data) ‖ decision ‖ 0 ‖ identifier`.
  var signedBytes: [UInt8] {
    // Not a chain of `+`, for which Swift 6.2 gives up.
    let parts: [[UInt8]] = [
      Array("approval-authenticator/v1".utf8), nonce, requestSHA256, SHA256.hash(data), Array(decision.rawValue.utf8),
      [0], Array(authenticator.utf8),
    ]
    return Array(parts.joined())
  }

  package func isProved(by proof: [UInt8], _ key: Ed25519.PublicKey) -> Bool {
    nonce.count == 32 && requestSHA256.count == 32 && key.isValidSignature(proof, for: signedBytes)
  }
}
