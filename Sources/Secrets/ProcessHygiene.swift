import CLinux
import Glibc

/// Overwrites what libraries free. librnp leaves what it decrypted in its read buffer, and a refresh token may have been
/// in that. Call once at start.
/// - Returns: whether the allocator agreed.
@discardableResult
public func overwriteFreedMemory() -> Bool { approval_linux_overwrite_freed_memory() == 1 }

/// Takes away what would let a secret leave the process by accident: core dumps and debuggers of the same user.
/// Call once at start.
/// - Returns: whether the kernel agreed to both.
@discardableResult
public func forbidMemoryDumps() -> Bool {
  approval_linux_forbid_dumps() == 0
}

/// Takes away the crash reporter of the Swift runtime, which writes registers and memory to standard error, and from there
/// to the journal. It has handlers for these signals when a program starts (`SWIFT_BACKTRACE` in the environment would have
/// kept it from setting them); without them a crash ends the process as it does any other. Call first of all.
public func forbidCrashReports() {
  for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
}
