// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The parameters of an account's one-time passwords (RFC 4226, RFC 6238), as read from a QR code. The type has no
/// description because it contains the secret.
package struct OATHCredential: Sendable {
  package enum Algorithm: String, Sendable, CaseIterable {
    /// A digest of 16 bytes. Some truncation offsets (RFC 4226 §5.3) lie outside; no code can be computed for them.
    case md5
    case sha1, sha224, sha256, sha384, sha512
  }

  /// The moving factor (RFC 4226 §5.1).
  package enum Factor: Sendable, Equatable {
    /// The counter of the next code.
    case counter(UInt64)
    /// The validity period of a code in seconds; at least 1.
    case period(Int64)
  }

  package let issuer: String
  package let accountName: String
  /// At least one byte.
  package let secret: SecretBytes
  package let algorithm: Algorithm
  /// 6 or 8.
  package let digits: Int
  package let factor: Factor
  /// The server's identifier of its record of this credential, if it sends one.
  package let resourceID: String?

  package init(
    issuer: String, accountName: String, secret: SecretBytes, algorithm: Algorithm, digits: Int, factor: Factor,
    resourceID: String?
  ) {
    self.issuer = issuer
    self.accountName = accountName
    self.secret = secret
    self.algorithm = algorithm
    self.digits = digits
    self.factor = factor
    self.resourceID = resourceID
  }
}
