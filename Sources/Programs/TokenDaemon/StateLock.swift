// SPDX-License-Identifier: Apache-2.0
package import ControlProtocol
import Glibc

/// One service per state directory: two would race for every press. The lock ends with the process.
package func lockState(_ directory: String) throws(CommandError) {
  let descriptor = open(directory + "/serve.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
  guard descriptor >= 0 else {
    throw CommandError(
      .unavailable,
      "\(directory)/serve.lock cannot be written: \(String(cString: strerror(errno))); see `approval-token doctor`")
  }
  guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
    let number = errno
    close(descriptor)
    throw number == EWOULDBLOCK
      ? CommandError(.inUse, "another `approval-token serve` uses \(directory)")
      : CommandError(.unavailable, "\(directory)/serve.lock cannot be locked: \(String(cString: strerror(number)))")
  }
}
