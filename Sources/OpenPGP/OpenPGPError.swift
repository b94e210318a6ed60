/// Why a message, certificate or key was refused. Nothing of a refused message is released.
/// For logs on this side only: a peer that learns which check failed learns something.
public enum OpenPGPError: Error, Equatable, Sendable {
  /// Not OpenPGP, truncated, or damaged before anything could be checked.
  case malformed(String)
  /// Not encrypted, or not to this key.
  case notForUs
  /// The integrity check (MDC) failed, is missing, or was never reached because what came before it made no sense.
  case notIntact
  case unsigned
  /// Signed, but not by the expected certificate. The fingerprint (or key ID, if the signature has only that) of the
  /// key that is said to have signed; upper-case hex.
  case wrongSigner(fingerprint: String)
  /// Said to be by the expected certificate, but wrong, expired or unreadable.
  case badSignature
  /// Bytes the caller, or the profile, allows.
  case tooLarge(limit: Int)
  /// Expired, revoked, or without valid self-signatures; the text says which.
  case certificateNotValid(String)
  /// Uses a feature the profile does not have; the text names it.
  case unsupported(String)
  /// The library failed in a way that says nothing about the input (out of memory, no randomness).
  case libraryFailure(String)
}
