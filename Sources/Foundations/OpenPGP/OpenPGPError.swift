// SPDX-License-Identifier: Apache-2.0
/// The reason why a message, certificate or key was rejected. No plaintext of a rejected message is released. For local
/// logs only: a peer must not learn which check failed.
package enum OpenPGPError: Error, Equatable, Sendable {
  /// Not OpenPGP, truncated, or damaged so that no check was possible.
  case malformed(String)
  /// Not encrypted, or encrypted to another key.
  case notForUs
  /// The integrity check (MDC) failed, is missing, or was not reached because earlier data was invalid.
  case notIntact
  case unsigned
  /// Signed, but not by the expected certificate. `fingerprint` is the claimed signing key, in upper-case hex (the key
  /// ID if the signature contains only that).
  case wrongSigner(fingerprint: String)
  /// Claims the expected certificate, but is wrong, expired or unreadable.
  case badSignature
  /// Larger than the caller or the profile permits. The limit is in bytes.
  case tooLarge(limit: Int)
  /// Expired, revoked, or without valid self-signatures; the text names the reason.
  case certificateNotValid(String)
  /// Uses a feature outside the profile; the text names it.
  case unsupported(String)
  /// The library failed for a reason other than the input (out of memory, no randomness).
  case libraryFailure(String)
}
