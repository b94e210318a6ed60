// SPDX-License-Identifier: Apache-2.0
/// Finds the complete elements of a truncated JSON body.
package enum CutJSON {
  /// Returns the complete objects and arrays at a depth, in one pass over arbitrary bytes.
  /// - Parameters:
  ///   - wanted: the number of enclosing objects and arrays: in `{"a":[X]}`, X is at depth 2.
  ///   - most: no more than the first ones.
  package static func elements(in bytes: [UInt8], depth wanted: Int, most: Int) -> [ArraySlice<UInt8>] {
    var found: [ArraySlice<UInt8>] = []
    var (depth, start, isInText, isEscaped) = (0, 0, false, false)
    for (index, byte) in bytes.enumerated() {
      if isInText {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == quote {
          isInText = false
        }
        continue
      }
      switch byte {
      case quote: isInText = true
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        if depth == wanted { start = index }
        depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == wanted { found.append(bytes[start...index]) }
        if depth <= 0 || found.count >= most { return found }
      default: break
      }
    }
    return found
  }

  private static let quote = UInt8(ascii: "\"")
}
