public import Cryptography
public import Secrets

/// `W = RT ⊕ K`: a server's refresh token under a PIN that only the server can judge. Every PIN unwraps 32 bytes that
/// are as good a token as any other; nothing here, inside or beside, tells the right one.
///
/// One token must be wrapped once in its life. Wrapped again, under whatever PIN and salt, the two together tell the
/// PIN to anybody who tries all; and cards keep what was deleted. A new PIN or new parameters take a new token from
/// the server first.
public struct WrappedToken: Sendable {
  public let derivation: KeyDerivation
  /// W.
  private let wrapped: SecretBytes

  private static let version: UInt8 = 1
  private static let tokenBytes = 32
  private static let purpose = "approval-token/pin-wrapped-token/v1"

  /// - Parameters:
  ///   - token: `RT`, 32 bytes, uniformly random.
  ///   - binding: `Vault.pinBinding`.
  /// - Throws: `.malformed` for a token of another length, or as `Scrypt.derive`.
  public static func wrap(
    _ token: SecretBytes, under pin: PIN, binding: SecretBytes, parameters: Scrypt.Parameters
  ) throws(CryptographyError) -> WrappedToken {
    guard token.count == tokenBytes else { throw .malformed("refresh token of \(token.count) bytes") }
    let derivation = KeyDerivation(parameters: parameters)
    let key = try derivation.key(from: pin, binding: binding, purpose: purpose)
    return WrappedToken(derivation: derivation, wrapped: token ^ key)
  }

  /// `RT'`: the token if the PIN is the right one, and otherwise another one.
  /// - Throws: never because of the PIN; as `Scrypt.derive` if the record was damaged.
  public func unwrap(with pin: PIN, binding: SecretBytes) throws(CryptographyError) -> SecretBytes {
    wrapped ^ (try derivation.key(from: pin, binding: binding, purpose: Self.purpose))
  }
}

/// As an account's record has it: version, parameters, salt, W. The vault seals it like all records; neither that seal
/// nor what stands before W knows the PIN or the token.
extension WrappedToken {
  public var encoded: SecretBytes {
    let header = [Self.version] + derivation.encoded
    return SecretBytes(count: header.count + wrapped.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyBytes(from: header)
      let rest = UnsafeMutableRawBufferPointer(rebasing: target[header.count...])
      wrapped.withExposedSecret { rest.copyMemory(from: $0) }
    }
  }

  /// - Throws: `.malformed` if this is not what `encoded` gives.
  public init(encoded: SecretBytes) throws(CryptographyError) {
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

/// Of equal lengths; never in ordinary memory.
private func ^ (one: SecretBytes, other: SecretBytes) -> SecretBytes {
  one.withExposedSecret { one in
    other.withExposedSecret { other in
      SecretBytes(count: one.count) { (target: UnsafeMutableRawBufferPointer) in
        for index in one.indices { target[index] = one[index] ^ other[index] }
      }
    }
  }
}
