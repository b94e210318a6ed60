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

/// For a process with secrets in its memory: no core dumps, and freed memory is overwritten. Call once at start.
package func protectMemory() {
  forbidMemoryDumps()
  overwriteFreedMemory()
}

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
