import CLinux

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
