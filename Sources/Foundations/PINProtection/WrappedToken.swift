// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import Secrets

/// `W = RT ⊕ K`: a server's refresh token encrypted with a PIN-derived key, where only the server can verify the PIN.
/// Every PIN unwraps 32 bytes that look like a valid token; no local data identifies the correct one.
///
/// A token must be wrapped only once. Two wrappings of the same token, with whatever PINs and salts, allow an attacker
/// to find the PINs by trying all of them, and storage media keep deleted data. For a new PIN or new parameters, first
/// get a new token from the server.
package struct WrappedToken: Sendable {
  package let derivation: KeyDerivation
  /// The ciphertext W.
  private let wrapped: SecretBytes

  private static let version: UInt8 = 1
  fileprivate static let tokenBytes = 32
  private static let purpose = "approval-token/pin-wrapped-token/v1"

  /// - Parameters:
  ///   - token: `RT`, 32 bytes, uniformly random.
  ///   - binding: `Vault.pinBinding`.
  /// - Throws: `.malformed` for a token of another length, or as `Scrypt.derive`.
  package static func wrap(
    _ token: SecretBytes, under pin: PIN, binding: SecretBytes, parameters: Scrypt.Parameters
  ) throws(CryptographyError) -> WrappedToken {
    guard token.count == tokenBytes else { throw .malformed("refresh token of \(token.count) bytes") }
    let derivation = KeyDerivation(parameters: parameters)
    let key = try derivation.key(from: pin, binding: binding, purpose: purpose)
    return WrappedToken(derivation: derivation, wrapped: token ^ key)
  }

  /// `RT'`: the token if the PIN is correct, otherwise other bytes.
  /// - Throws: never because of the PIN; as `Scrypt.derive` if the record is damaged.
  package func unwrap(with pin: PIN, binding: SecretBytes) throws(CryptographyError) -> SecretBytes {
    try unwrapAll(with: pin, binding: binding).token
  }

  /// As `unwrap`, with the keys of the tokens beside this one, for the time of one derivation.
  package func unwrapAll(with pin: PIN, binding: SecretBytes) throws(CryptographyError) -> UnwrappedTokens {
    let stretched = try derivation.stretch(pin, binding: binding)
    return UnwrappedTokens(token: wrapped ^ HKDF.derive(stretched, info: Self.purpose), stretched: stretched)
  }
}

/// What one typed PIN decrypts: the token of the PIN, and tokens of other authenticators that wait for the PIN. With a
/// wrong PIN, all of them are other bytes.
package struct UnwrappedTokens: Sendable {
  private static let purpose = "approval-token/pin-wrapped-companion/v1/"

  /// `RT'` of the PIN.
  package let token: SecretBytes
  private let stretched: SecretBytes

  fileprivate init(token: SecretBytes, stretched: SecretBytes) {
    self.token = token
    self.stretched = stretched
  }

  /// Encrypts another token with a key of the same PIN, or decrypts it: both are the same operation. As for
  /// `WrappedToken`, a token is wrapped once: for a new PIN, first get a new token from the server.
  /// - Parameter name: names the key. Two tokens must not have the same name, whatever becomes of the first one.
  /// - Throws: `.malformed` for a token of another length.
  package func masked(_ token: SecretBytes, named name: String) throws(CryptographyError) -> SecretBytes {
    guard token.count == WrappedToken.tokenBytes else { throw .malformed("refresh token of \(token.count) bytes") }
    return token ^ HKDF.derive(stretched, info: Self.purpose + name)
  }
}

/// The encoding in an account's record: version, parameters, salt, W. The vault encrypts it like all records. Neither
/// that encryption nor the bytes before W depend on the PIN or the token.
extension WrappedToken {
  package var encoded: SecretBytes {
    let header = [Self.version] + derivation.encoded
    return SecretBytes(count: header.count + wrapped.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyBytes(from: header)
      let rest = UnsafeMutableRawBufferPointer(rebasing: target[header.count...])
      wrapped.withExposedSecret { rest.copyMemory(from: $0) }
    }
  }

  /// - Throws: `.malformed` if the bytes are not an encoding.
  package init(encoded: SecretBytes) throws(CryptographyError) {
    let headerBytes = 1 + KeyDerivation.encodedBytes
    self = try encoded.withExposedSecret { (bytes: UnsafeRawBufferPointer) throws(CryptographyError) in
      guard bytes.count == headerBytes + Self.tokenBytes else {
        throw .malformed("wrapped token of \(bytes.count) bytes")
      }
      guard bytes[0] == Self.version else { throw .malformed("wrapped token of version \(bytes[0])") }
      return WrappedToken(
        derivation: try KeyDerivation(encoded: bytes[1..<headerBytes]),
        wrapped: SecretBytes(copying: bytes[headerBytes...]))
    }
  }
}

/// XOR of two values of equal length, never in ordinary memory.
private func ^ (one: SecretBytes, other: SecretBytes) -> SecretBytes {
  one.withExposedSecret { one in
    other.withExposedSecret { other in
      SecretBytes(count: one.count) { (target: UnsafeMutableRawBufferPointer) in
        for index in one.indices { target[index] = one[index] ^ other[index] }
      }
    }
  }
}
