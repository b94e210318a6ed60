// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A file of /proc, whole: the kernel gives it in parts, of which Foundation reads only the first.
package func wholeText(of path: String) throws -> String {
  guard let stream = fopen(path, "re") else { throw UnreadableFileError(description: "\(path): errno \(errno)") }
  defer { fclose(stream) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65_536)
  while case let count = fread(&chunk, 1, chunk.count, stream), count > 0 { bytes += chunk[..<count] }
  return String(decoding: bytes, as: UTF8.self)
}

package struct UnreadableFileError: Error, CustomStringConvertible {
  package let description: String
}
