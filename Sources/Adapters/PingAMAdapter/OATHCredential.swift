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
  /// AM's identifier of its record of this credential; AM 8.0.1 and later.
  package let resourceID: String?

  init(
    _ host: OATHHost, _ parameters: URIParameters, issuer: String, accountName: String
  ) throws(RegistrationURI.ParseError) {
    self.issuer = issuer
    self.accountName = accountName
    guard var secret = bytes(lenientBase32: try parameters.required("secret")), !secret.isEmpty else {
      throw .malformed("secret")
    }
    self.secret = SecretBytes(copying: secret)
    cleanse(&secret)
    guard let algorithm = Algorithm(rawValue: (parameters["algorithm"] ?? "sha1").lowercased()) else {
      throw .malformed("algorithm")
    }
    self.algorithm = algorithm
    digits = Int(try parameters.number("digits", in: 6...8) ?? 6)
    guard digits != 7 else { throw .malformed("digits") }
    factor =
      switch host {
      case .hotp: .counter(UInt64(try parameters.number("counter", in: 0...Int64.max) ?? 0))
      case .totp: .period(try parameters.number("period", in: 1...Int64.max) ?? 30)
      }
    resourceID = try parameters.text("oid")
  }
}

/// The host part of a URI for one-time passwords.
enum OATHHost: String { case hotp, totp }
