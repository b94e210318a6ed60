public import Secrets

/// What makes one-time passwords for one account (RFC 4226, RFC 6238), as a QR code gives it. It has no description:
/// whoever has the secret has the codes.
public struct OATHCredential: Sendable {
  public enum Algorithm: String, Sendable, CaseIterable {
    /// 16 bytes: some truncation offsets lie beyond them, and no code comes of those.
    case md5
    case sha1, sha224, sha256, sha384, sha512
  }

  /// What moves on from code to code.
  public enum Factor: Sendable, Equatable {
    /// The next code's counter.
    case counter(UInt64)
    /// Seconds that a code lives; at least 1.
    case period(Int64)
  }

  public let issuer: String
  public let accountName: String
  /// At least one byte.
  public let secret: SecretBytes
  public let algorithm: Algorithm
  /// 6 or 8.
  public let digits: Int
  public let factor: Factor
  /// AM's name for its record of this credential, from 8.0.1 on.
  public let resourceID: String?

  init(
    _ host: OATHHost, _ parameters: URIParameters, issuer: String, accountName: String
  ) throws(RegistrationURI.Flaw) {
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

/// The host part of a URI that makes one-time passwords.
enum OATHHost: String { case hotp, totp }
