import COpenSSL

/// Bytes that must not outlive their use: locked in memory, left out of core dumps, zeroed when the last owner
/// lets go, compared in constant time. They have no description, and leave only through a name that says so.
public final class SecretBytes: Sendable {
  /// Written only while `init` runs.
  private let buffer: SecretBuffer

  /// Number of bytes. Not secret.
  public var count: Int { buffer.count }

  /// Makes `count` secret bytes and lets `fill` write them in place. They are zeroed again if `fill` throws.
  public init<Failure: Error>(
    count: Int, filledBy fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    var buffer = SecretBuffer(count: count)
    try buffer.withMutableBytes(fill)
    self.buffer = buffer
  }

  /// Copies bytes that are already in ordinary memory. The caller still has to forget its own copy.
  public convenience init(copying bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in target.copyBytes(from: bytes) }
  }

  /// The one way out. What the closure copies is no longer protected by this type.
  public func withExposedSecret<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try buffer.withBytes(body)
  }

  /// Equal length and equal bytes; the time depends on the length alone.
  public static func constantTimeEqual(_ one: SecretBytes, _ other: SecretBytes) -> Bool {
    one.count == other.count
      && one.buffer.withBytes { one in
        other.buffer.withBytes { other in CRYPTO_memcmp(one.baseAddress, other.baseAddress, one.count) == 0 }
      }
  }
}

/// Zeroes ordinary memory that held a secret on its way somewhere else (a C library's buffer, a decoded string).
public func cleanse(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
}
