// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc

/// Makes the allocator overwrite freed memory. librnp leaves decrypted data in its read buffer, which may have
/// contained a refresh token. Call once at start.
/// - Returns: whether the allocator supports it.
@discardableResult
package func overwriteFreedMemory() -> Bool { approval_linux_overwrite_freed_memory() == 1 }

/// Gives pages with nothing but freed memory back to the kernel. Call where much has been freed, and nothing waits: all
/// threads' allocations wait meanwhile.
/// - Returns: whether there were any.
@discardableResult
package func giveBackFreedMemory() -> Bool { approval_linux_give_back_freed_memory() == 1 }

/// For a server under load: lets the allocator keep some megabytes for the next request, in place of giving them back
/// to the kernel after each. Call once at start.
/// - Returns: whether the allocator supports it.
@discardableResult
package func keepFreedMemory() -> Bool { approval_linux_keep_freed_memory() == 1 }

/// For a process with secrets in its memory: no core dumps, and freed memory is overwritten. Call once at start.
package func protectMemory() {
  forbidMemoryDumps()
  overwriteFreedMemory()
}

/// Limits the memory that librnp's cryptography (Botan) locks when it is loaded, unless the environment does. Its
/// default, 512 KiB, keeps 1 MiB of guard pages in addition. Call once at start, while there are no other threads.
package func limitLockedMemoryOfLibraries() {
  setenv("BOTAN_MLOCK_POOL_SIZE", "\(lockedKibibytes(pageSize: sysconf(Int32(_SC_PAGESIZE))))", 0)
}

/// Eight pages, of 4 or 16 KiB: each holds secrets of similar length.
func lockedKibibytes(pageSize: Int) -> Int { 8 * pageSize / 1024 }

/// Disables core dumps and debuggers of the same user, which could expose secrets. Call once at start.
/// - Returns: whether the kernel accepted both settings.
@discardableResult
package func forbidMemoryDumps() -> Bool {
  approval_linux_forbid_dumps() == 0
}

/// Disables the crash reporter of the Swift runtime, which writes registers and memory to standard error and so to the
/// journal. The runtime installs signal handlers at start, unless `SWIFT_BACKTRACE` in the environment disables them;
/// this function restores the default handlers. Call before everything else.
package func forbidCrashReports() {
  for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
}

/// Puts a descriptor that cannot be used in place of each closed one of standard input, output and error: otherwise the
/// next file or connection would be taken for it. Call before everything that opens one.
package func occupyClosedStandardStreams() {
  for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 {
    _ = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY)
  }
}
