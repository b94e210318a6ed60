// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Parses an IPv4 or IPv6 address into its 4 or 16 bytes, network byte order.
package enum IPAddressBytes {
  package static func parse(_ text: String) -> [UInt8]? {
    // The C function would read only the text before a NUL.
    let isPossible = text.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit || $0 == 0x2E || $0 == 0x3A }
    guard isPossible else { return nil }
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
    return inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : nil
  }
}
