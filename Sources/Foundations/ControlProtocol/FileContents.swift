// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The contents of a small file that a user or an administrator has written.
/// - Throws: `.badData` if it cannot be read in full, or has 64 KiB or more.
package func fileContents(_ file: String) throws(CommandError) -> [UInt8] {
  guard let stream = fopen(file, "re") else { throw unreadable(file) }
  defer { fclose(stream) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  let count = fread(&bytes, 1, bytes.count, stream)
  guard ferror(stream) == 0 else { throw unreadable(file) }
  guard count < bytes.count else {
    throw CommandError(.badData, "\(file) is too large: it must have less than 64 KiB")
  }
  bytes.removeLast(bytes.count - count)
  return bytes
}

private func unreadable(_ file: String) -> CommandError {
  CommandError(.badData, "cannot read \(file): \(String(cString: strerror(errno)))")
}
