// SPDX-License-Identifier: Apache-2.0

/// An authenticator that stands for the biometric check of a server which verifies none: this token verifies it. Stored
/// with the account.
package struct StandIn: Sendable, Equatable {
  /// What is verified.
  package enum Proof: Sendable, Equatable {
    /// The reader compares the finger with `registration`.
    case finger
    /// A signature by this key: the uncompressed point on P-256, 65 bytes.
    case badge(key: [UInt8])
    case securityKey(key: [UInt8])
  }

  /// The maximum number for each account.
  package static let most = AuthenticatorDrivers.most

  package let identifier: String
  package let proof: Proof
  /// As in `DriverCall`.
  package let registration: [UInt8]

  package init(_ identifier: String, _ proof: Proof, registration: [UInt8]) {
    self.identifier = identifier
    self.proof = proof
    self.registration = registration
  }

  package var kind: Authenticator.Kind { proof == .finger ? .biometric : .custom }
}
