// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import ReferenceProtocol

/// The server's PIN verifier of a profile: it can verify proofs of the PIN, but not create them.
package struct PINVerifierRecord: Sendable {
  /// How long a profile may stay without the PIN it was activated for, in milliseconds.
  package static let pendingForMs: Int64 = 600_000

  package let publicKey: Ed25519.PublicKey
  package let isActive: Bool
  package let nonce: String?
  package let activation: [UInt8]?
  /// Attempts since the last correct PIN.
  package let failures: Int
  package let proposedAtMs: Int64

  package init(
    publicKey: Ed25519.PublicKey, isActive: Bool, nonce: String?, activation: [UInt8]?, failures: Int,
    proposedAtMs: Int64
  ) {
    self.publicKey = publicKey
    self.isActive = isActive
    self.nonce = nonce
    self.activation = activation
    self.failures = failures
    self.proposedAtMs = proposedAtMs
  }

  package func hasExpired(at nowMs: Int64) -> Bool { !isActive && nowMs >= proposedAtMs + Self.pendingForMs }

  package func counts(of profileID: ProfileID, limit: Int) -> ProfileFailureCounts {
    ProfileFailureCounts(profileID: profileID.text, max: limit, previous: min(failures, limit))
  }
}
