// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// JSON Web Signature, compact serialization (RFC 7515 §3.1), with ES256, or with HS256 between two parties that share
/// a secret. The type of the caller's key selects the algorithm, never the header. This prevents algorithm confusion.
package enum JWS {
  /// - Parameters:
  ///   - header: the protected header as JSON, with `"alg":"ES256"`.
  ///   - payload: any bytes.
  package static func sign(header: [UInt8], payload: [UInt8], key: P256PrivateKey) throws(CryptographyError) -> String {
    let input = "\(header.base64URL).\(payload.base64URL)"
    return "\(input).\(try key.signature(for: Array(input.utf8)).base64URL)"
  }

  /// - Parameters:
  ///   - header: the protected header as JSON, with `"alg":"HS256"`.
  ///   - payload: any bytes.
  ///   - secret: 32 bytes or more (RFC 7518 §3.2).
  package static func sign(header: [UInt8], payload: [UInt8], secret: SecretBytes) -> String {
    precondition(secret.count >= 32, "a secret of \(secret.count) bytes")
    let input = "\(header.base64URL).\(payload.base64URL)"
    return "\(input).\(HMACSHA256.authenticate(Array(input.utf8), key: secret).base64URL)"
  }

  /// The three parts of a compact JWS before verification.
  package struct Unverified: Sendable, Equatable {
    package let header: [UInt8]
    fileprivate let signedText: [UInt8]
    fileprivate let unverifiedPayload: [UInt8]
    fileprivate let signature: [UInt8]

    /// - Parameter text: at most 16 KiB, three Base64url parts.
    package init(parsing text: String) throws(CryptographyError) {
      guard text.utf8.count <= 16_384 else { throw .malformed("JWS of \(text.utf8.count) bytes") }
      let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      guard parts.count == 3, let header = bytes(base64URL: parts[0]), let payload = bytes(base64URL: parts[1]),
        let signature = bytes(base64URL: parts[2])
      else { throw .malformed("JWS: not three Base64url parts") }
      self.header = header
      unverifiedPayload = payload
      self.signature = signature
      signedText = Array(text.utf8[..<parts[1].endIndex])
    }

    /// The payload before verification. Use it only to find the key that should have signed it.
    package var untrustedPayload: [UInt8] { unverifiedPayload }

    /// The payload, after the signature is verified with this key.
    package func payload(verifiedBy key: P256PublicKey) throws(CryptographyError) -> [UInt8] {
      guard key.isValidSignature(signature, for: signedText) else { throw .notAuthentic }
      return unverifiedPayload
    }

    /// The payload, after the tag is verified with this secret.
    package func payload(authenticatedBy secret: SecretBytes) throws(CryptographyError) -> [UInt8] {
      guard HMACSHA256.isValid(signature, for: signedText, key: secret) else { throw .notAuthentic }
      return unverifiedPayload
    }
  }
}
