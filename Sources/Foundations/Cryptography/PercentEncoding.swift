// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// Decodes percent-encoding in URIs. A plus sign stays a plus sign, unlike in form data.
/// - Returns: nil if the text is not percent-encoded UTF-8 (RFC 3986 §2.1), or has too many combining marks.
package func percentDecoded(_ encoded: some Collection<UInt8>) -> String? { percentDecoded(Array(encoded)[...]) }

/// Not generic, because callers in other modules would run it unspecialized: calls for each byte.
private func percentDecoded(_ encoded: ArraySlice<UInt8>) -> String? {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(encoded.count)
  var rest = encoded
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "%") else {
      bytes.append(byte)
      continue
    }
    guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue else { return nil }
    bytes.append(high << 4 | low)
  }
  return String(validating: bytes, as: UTF8.self).flatMap { $0.hasTooManyCombiningMarks ? nil : $0 }
}

extension UInt8 {
  fileprivate var hexValue: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
