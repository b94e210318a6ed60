// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Device nodes that control all GPIO lines, bypassing the kernel's line requests: `gpiomem*` maps their registers,
/// `pio0` of Raspberry Pi 5 gives them to programmable I/O. A process with access to such a node can simulate a button
/// press. Raspberry Pi OS grants access to the group `gpio`.
package enum RegisterNodes {
  /// The nodes that users other than root can open.
  /// - Parameter directory: the directory of device nodes.
  package static func open(in directory: String = "/dev") -> [String] {
    guard let entries = opendir(directory) else { return [] }
    defer { closedir(entries) }
    var found: [String] = []
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if isRegisterNode(name), isOpen("\(directory)/\(name)") { found.append("\(directory)/\(name)") }
    }
    return found.sorted()
  }

  package static let remedy = """
    restrict it: install the rules in udev/, which permit only root, then `udevadm control --reload` and \
    `udevadm trigger`
    """

  private static func isRegisterNode(_ name: String) -> Bool {
    name.hasPrefix("gpiomem")
      || name.hasPrefix("pio") && name.utf8.dropFirst(3).first.map { (0x30...0x39).contains($0) } == true
  }

  private static func isOpen(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    return status.st_mode & 0o006 != 0 || status.st_mode & 0o060 != 0 && status.st_gid != 0 || status.st_uid != 0
  }
}
