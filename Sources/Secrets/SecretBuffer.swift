import CLinux
import COpenSSL
import Glibc

/// A place for secrets that change while they are made, such as digits being typed: locked in memory, left out of core
/// dumps, all zero at first, zeroed by `wipe` and when its one owner lets go. What no longer changes is `SecretBytes`.
public struct SecretBuffer: ~Copyable, @unchecked Sendable {
  /// Number of bytes. Not secret.
  public let count: Int
  /// Owned; as many whole pages as `count` needs, at least one.
  private let pages: UnsafeMutableRawBufferPointer

  /// Locking is best effort: a board with a small `RLIMIT_MEMLOCK` still works, `doctor` says so there.
  public init(count: Int) {
    self.count = count
    let length = max(1, (count + pageSize - 1) / pageSize) * pageSize
    // Pages of their own: mlock and madvise work on whole pages, and unlocking must never unlock a neighbour's.
    guard let address = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      address != MAP_FAILED
    else { fatalError("mmap of \(length) bytes for a secret failed: errno \(errno)") }
    _ = mlock(address, length)
    _ = approval_linux_leave_out_of_dumps(address, length)
    pages = UnsafeMutableRawBufferPointer(start: address, count: length)
  }

  deinit {
    OPENSSL_cleanse(pages.baseAddress, pages.count)
    munmap(pages.baseAddress, pages.count)
  }

  /// What the closure copies is no longer protected by this type.
  public borrowing func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(rebasing: pages[..<count]))
  }

  /// As `withBytes`, to write in place.
  public mutating func withMutableBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeMutableRawBufferPointer(rebasing: pages[..<count]))
  }

  /// All zero again.
  public mutating func wipe() { OPENSSL_cleanse(pages.baseAddress, count) }
}

private let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
