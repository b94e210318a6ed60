import CLinux

/// Takes away what would let a secret leave the process by accident: core dumps and debuggers of the same user.
/// Call once at start.
/// - Returns: whether the kernel agreed to both.
@discardableResult
public func forbidMemoryDumps() -> Bool {
  approval_linux_forbid_dumps() == 0
}
