import COpenSSL
public import Secrets

/// Randomness from OpenSSL's generator, seeded by the kernel. A failing generator ends the process: there is no
/// safe way on from there.
public enum Random {
  public static func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      precondition(RAND_bytes(buffer.baseAddress, Int32(count)) == 1, "no randomness")
      initialized = count
    }
  }

  public static func secret(_ count: Int) -> SecretBytes {
    SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) in
      precondition(RAND_priv_bytes(target.bindMemory(to: UInt8.self).baseAddress, Int32(count)) == 1, "no randomness")
    }
  }

  /// A version 4 UUID (RFC 9562 §5.4), lower case.
  public static func uuid() -> String {
    var bytes = bytes(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let hex = bytes.lowercaseHex
    var text = ""
    for (index, digit) in hex.enumerated() {
      if [8, 12, 16, 20].contains(index) { text.append("-") }
      text.append(digit)
    }
    return text
  }
}
