// SPDX-License-Identifier: Apache-2.0
import CLinux
import COpenSSL
import Glibc

/// A mutable buffer for secrets, such as typed digits: locked in memory, excluded from core dumps, initially zero,
/// zeroed by `wipe` and at the end of its lifetime. `SecretBytes` is the immutable counterpart.
package struct SecretBuffer: ~Copyable, @unchecked Sendable {
  /// Number of bytes. Not secret.
  package let count: Int
  /// Owned. The number of whole pages that `count` bytes need, at least one.
  private let pages: UnsafeMutableRawBufferPointer

  /// Locking is best effort. A board with a small `RLIMIT_MEMLOCK` still works, and `doctor` reports it.
  package init(count: Int) {
    self.count = count
    let length = max(1, (count + pageSize - 1) / pageSize) * pageSize
    // Uses separate pages: mlock and madvise work on whole pages, and unlocking must not unlock other data.
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

  /// Gives read access. Bytes that the closure copies are no longer protected by this type.
  package borrowing func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(rebasing: pages[..<count]))
  }

  /// Gives write access; otherwise as `withBytes`.
  package mutating func withMutableBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeMutableRawBufferPointer(rebasing: pages[..<count]))
  }

  /// Sets all bytes to zero.
  package mutating func wipe() { OPENSSL_cleanse(pages.baseAddress, count) }
}

private let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
