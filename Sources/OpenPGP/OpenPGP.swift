public import Secrets

/// Why a message, certificate or key was refused. Nothing of a refused message is released.
public enum OpenPGPError: Error, Equatable, Sendable {
  /// Not OpenPGP, truncated, or damaged before anything could be checked.
  case malformed(String)
  /// Not encrypted to this key.
  case notForUs
  /// The integrity check (MDC or AEAD tag) failed or is missing.
  case notIntact
  case unsigned
  /// Signed, but by none or not only by the expected certificate.
  case wrongSigner(fingerprint: String)
  case badSignature
  case tooLarge(limit: Int)
  /// Uses a feature the profile does not have; the text names it.
  case unsupported(String)
  /// The library failed in a way that says nothing about the input (out of memory, no randomness).
  case libraryFailure(String)
}

/// A transferable public key of the profile `v4-25519`: Ed25519 primary, Curve25519 encryption subkey.
public struct OpenPGPCertificate: Sendable, Equatable {
  /// Binary transferable public key (RFC 9580 §10.1), as received or generated.
  public let bytes: [UInt8]
  /// Upper-case hex of the primary key's fingerprint: 40 digits for v4.
  public let fingerprint: String
}
