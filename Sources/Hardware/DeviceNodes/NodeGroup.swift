// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The group that may open a device node, for error messages.
/// - Returns: the group's name, or its number if it has none; nil if the node does not exist.
package func groupName(ofNode path: String) -> String? {
  var node = stat()
  guard stat(path, &node) == 0 else { return nil }
  return groupName(of: node.st_gid)
}

func groupName(of id: gid_t) -> String {
  var entry = group()
  var result: UnsafeMutablePointer<group>?
  // The strings that `entry` points to are in the buffer, which must live until the name is copied.
  return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
    guard getgrgid_r(id, &entry, buffer.baseAddress, buffer.count, &result) == 0, let result,
      let name = result.pointee.gr_name
    else { return "\(id)" }
    return String(cString: name)
  }
}
