// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The serial number of this board, as its firmware writes it into the device tree: that of the Raspberry Pi's chip has
/// 16 hexadecimal digits.
/// - Returns: at most 64 characters of `A-Z`, `a-z`, `0-9`, `.`, `-` and `_`; nil without a device tree, and if it has
///   others, or none.
func boardSerial(at path: String = "/sys/firmware/devicetree/base/serial-number") -> String? {
  let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
  guard file >= 0 else { return nil }
  defer { close(file) }
  var bytes = [UInt8](repeating: 0, count: 66)
  let count = read(file, &bytes, bytes.count)
  guard count > 0 else { return nil }
  // The device tree ends its texts with a zero byte.
  let text = bytes.prefix(count).prefix { $0 != 0 }
  guard (1...64).contains(text.count), text.allSatisfy(isPermitted) else { return nil }
  return String(decoding: text, as: UTF8.self)
}

private func isPermitted(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"),
    UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
    true
  default: false
  }
}
