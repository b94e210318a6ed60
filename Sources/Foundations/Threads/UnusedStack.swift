// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Gives the pages of this thread's stack that are not in use back to the kernel, after a call that needed much of it:
/// the threads of tasks do not end, and each would keep those pages, with what the call left there. Takes microseconds.
package func discardUnusedStack() { approval_linux_discard_unused_stack() }
