// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import ReferenceProtocol

/// The server's PIN verifier of a profile: it can verify proofs of the PIN, but not create them.
package struct PINVerifierRecord: Sendable {
  /// How long a profile may stay without the PIN it was activated for.
  package static let pendingFor = Duration.seconds(600)

  package let publicKey: Ed25519.PublicKey
  package let isActive: Bool
  package let nonce: String?
  package let activation: [UInt8]?
  /// Attempts since the last correct PIN.
  package let failures: Int
  package let proposedAt: Timestamp

  package init(
    publicKey: Ed25519.PublicKey, isActive: Bool, nonce: String?, activation: [UInt8]?, failures: Int,
    proposedAt: Timestamp
  ) {
    self.publicKey = publicKey
    self.isActive = isActive
    self.nonce = nonce
    self.activation = activation
    self.failures = failures
    self.proposedAt = proposedAt
  }

  package func hasExpired(at now: Timestamp) -> Bool { !isActive && now >= proposedAt + Self.pendingFor }

  package func counts(of profileID: ProfileID, limit: Int) -> ProfileFailureCounts {
    ProfileFailureCounts(profileID: profileID.text, max: limit, previous: min(failures, limit))
  }
}
