import ReferenceProtocol

/// Parses the complete entries of a pending list that was truncated because it is too long.
enum PendingEntries {
  private struct Entry: Decodable {
    let requests: [PendingEntry]
  }

  /// - Parameter beginning: the start of a `PendingList`'s JSON.
  static func whole(in beginning: [UInt8]) -> [PendingEntry] {
    objects(in: beginning).compactMap { object in
      // Decoded as an element of a list, so that the same checks apply as to an entry of a complete list.
      (try? JSON.decode(Entry.self, from: Array(#"{"requests":["#.utf8) + object + Array("]}".utf8)))?.requests.first
    }
  }

  /// Returns the objects that are elements of a list in the outermost object. A single pass over arbitrary bytes.
  private static func objects(in bytes: [UInt8]) -> [ArraySlice<UInt8>] {
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
        if depth == 2 { start = index }
        depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 2 { found.append(bytes[start...index]) }
        if depth <= 0 { return found }
      default: break
      }
    }
    return found
  }

  private static let quote = UInt8(ascii: "\"")
}
