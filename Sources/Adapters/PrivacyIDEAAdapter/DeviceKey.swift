// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets

/// The token's key pair: RSA, or P-256 if the server is eduMFA and its administrator allows it.
enum DeviceKey: Sendable {
  case rsa(RSAPrivateKey)
  case p256(P256PrivateKey)

  init(secret: SecretBytes) throws(CryptographyError) {
    if let key = try? RSAPrivateKey(secret: secret) {
      self = .rsa(key)
    } else {
      self = .p256(try P256PrivateKey(secret: secret))
    }
  }

  func exportedSecret() throws(CryptographyError) -> SecretBytes {
    switch self {
    case .rsa(let key): try key.exportedSecret()
    case .p256(let key): try key.exportedSecret()
    }
  }

  /// The public key in standard Base64 with padding, on one line. The server accepts any other text too, and fails
  /// later.
  var publicKeyOnTheWire: String {
    switch self {
    case .rsa(let key): key.publicKey.subjectPublicKeyInfo.base64
    case .p256(let key): key.publicKey.subjectPublicKeyInfo.base64
    }
  }

  /// Signs the text. Base32 with padding.
  func signatureOnTheWire(for text: String) throws(CryptographyError) -> String {
    let message = Array(text.utf8)
    return switch self {
    case .rsa(let key): try key.signature(for: message).base32
    case .p256(let key): try key.derSignature(for: message).base32
    }
  }
}

extension RSAPublicKey {
  /// Parses the server's public key.
  /// - Parameter text: the key as the server sends it: PKCS#1 in Base64, with line breaks.
  init(onTheWire text: String) throws(CryptographyError) {
    guard let der = bytes(base64: text.filter { !$0.isWhitespace }) else { throw .malformed("RSA public key") }
    try self.init(pkcs1: der)
  }

  func isValidSignature(onTheWire signature: String, for text: String) -> Bool {
    guard let signature = bytes(base32: signature) else { return false }
    return isValidSignature(signature, for: Array(text.utf8))
  }
}
