// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The stack of a thread that does not end. It would keep all pages that a call has ever needed, with what was left
/// there. Not for the first thread of a process.
package struct UnusedStack {
  /// Bytes of the stack beyond what is in use: most tasks need less, and no call leaves traces only beyond the range.
  private static let (most, range) = (24 << 10, 128 << 10)

  private let lowest: UnsafeRawPointer?

  /// Of the calling thread.
  package init() { lowest = approval_linux_lowest_stack_address() }

  /// Gives the pages that are not in use back to the kernel, if a call needed many. Must be called by the same thread.
  package func discard() { _ = approval_linux_discard_unused_stack(lowest, Self.most, Self.range) }
}
