import CLinux
import COpenSSL
import Glibc

/// Bytes that must not outlive their use: locked in memory, left out of core dumps, zeroed when the last owner
/// lets go, compared in constant time. They have no description, and leave only through a name that says so.
public final class SecretBytes: Sendable {
  /// Number of bytes. Not secret.
  public let count: Int
  /// Owned; written only while `init` runs, zeroed and freed in `deinit`.
  private nonisolated(unsafe) let storage: UnsafeMutableRawBufferPointer

  /// Makes `count` secret bytes and lets `fill` write them in place. They are zeroed again if `fill` throws.
  ///
  /// Locking is best effort: a board with a small `RLIMIT_MEMLOCK` still works, `doctor` says so there.
  public init<Failure: Error>(
    count: Int, filledBy fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    self.count = count
    let pages = max(1, (count + pageSize - 1) / pageSize) * pageSize
    // Pages of their own: mlock and madvise work on whole pages, and unlocking must never unlock a neighbour's.
    guard let address = mmap(nil, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      address != MAP_FAILED
    else { fatalError("mmap of \(pages) bytes for a secret failed: errno \(errno)") }
    _ = mlock(address, pages)
    _ = approval_linux_leave_out_of_dumps(address, pages)
    storage = UnsafeMutableRawBufferPointer(start: address, count: count)
    try fill(storage)
  }

  /// Copies bytes that are already in ordinary memory. The caller still has to forget its own copy.
  public convenience init(copying bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in target.copyBytes(from: bytes) }
  }

  deinit {
    let pages = max(1, (count + pageSize - 1) / pageSize) * pageSize
    guard let address = storage.baseAddress else { return }
    OPENSSL_cleanse(address, pages)
    munmap(address, pages)
  }

  /// The one way out. What the closure copies is no longer protected by this type.
  public func withExposedSecret<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(storage))
  }

  /// Equal length and equal bytes; the time depends on the length alone.
  public static func constantTimeEqual(_ one: SecretBytes, _ other: SecretBytes) -> Bool {
    one.count == other.count && CRYPTO_memcmp(one.storage.baseAddress, other.storage.baseAddress, one.count) == 0
  }
}

private let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))

/// Zeroes ordinary memory that held a secret on its way somewhere else (a C library's buffer, a decoded string).
public func cleanse(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
}
