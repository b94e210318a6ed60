public import Cryptography
import Secrets

/// How a PIN becomes a key on one device: scrypt makes each guess cost memory and time, the device binding makes a
/// guess without the device impossible.
public struct KeyDerivation: Sendable, Equatable {
  public let parameters: Scrypt.Parameters
  /// 16 bytes, new for every key.
  public let salt: [UInt8]

  static let saltBytes = 16

  /// With a new salt.
  public init(parameters: Scrypt.Parameters) {
    self.init(parameters: parameters, salt: Random.bytes(Self.saltBytes))
  }

  init(parameters: Scrypt.Parameters, salt: [UInt8]) {
    self.parameters = parameters
    self.salt = salt
  }

  /// `HKDF-SHA256(scrypt(PIN, salt) and binding, purpose)`: 32 bytes.
  /// - Parameter binding: `Vault.pinBinding`, 32 bytes or more. It goes in with the key, not as HKDF's salt, which
  ///   OpenSSL does not zero when it lets go of it (providers/implementations/kdfs/hkdf.c).
  /// - Parameter purpose: keys for two purposes must never share it.
  /// - Throws: `.malformed` for parameters that scrypt does not take, or for a binding that is too short to be one.
  func key(from pin: PIN, binding: SecretBytes, purpose: String) throws(CryptographyError) -> SecretBytes {
    guard binding.count >= 32 else { throw .malformed("device binding of \(binding.count) bytes") }
    let stretched = try Scrypt.derive(pin.digits, salt: salt, parameters: parameters)
    return HKDF.derive(SecretBytes.joining([stretched, binding]), info: purpose)
  }
}

/// As records have it: the binary logarithm of N, r, p, then the salt. Nothing in it depends on a PIN.
extension KeyDerivation {
  static let encodedBytes = 3 + saltBytes

  var encoded: [UInt8] {
    [
      UInt8(parameters.cost.trailingZeroBitCount), UInt8(clamping: parameters.blockSize),
      UInt8(clamping: parameters.parallelisation),
    ] + salt
  }

  /// Whether scrypt takes the parameters is asked when a key is derived, before any memory is.
  init(encoded: some Collection<UInt8>) throws(CryptographyError) {
    let bytes = Array(encoded)
    guard bytes.count == Self.encodedBytes, bytes[0] < 64 else { throw .malformed("key derivation parameters") }
    let parameters = Scrypt.Parameters(
      cost: 1 << UInt64(bytes[0]), blockSize: UInt64(bytes[1]), parallelisation: UInt64(bytes[2]))
    self.init(parameters: parameters, salt: Array(bytes[3...]))
  }
}
