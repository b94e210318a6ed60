// SPDX-License-Identifier: Apache-2.0
import HTTP
import ReferenceProtocol

/// Parses the complete entries of a pending list that was truncated because it is too long.
enum PendingEntries {
  private struct Entry: Decodable {
    let requests: [PendingEntry]
  }

  /// More than the requests of one server that are kept, because some may be of unknown profiles. Decoding one takes
  /// far longer than sending `{}`.
  static let most = 1000

  /// - Parameter beginning: the start of a `PendingList`'s JSON.
  /// - Returns: of its first `most` entries those that can be read.
  static func whole(in beginning: [UInt8]) -> [PendingEntry] {
    CutJSON.elements(in: beginning, depth: 2, most: most).compactMap { object in
      // By way of a list, so that no entry is judged by other rules than those of a whole list.
      (try? JSON.decode(Entry.self, from: Array(#"{"requests":["#.utf8) + object + Array("]}".utf8)))?.requests.first
    }
  }
}
