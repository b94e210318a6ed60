// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

/// The boards of a fleet, as an administrator lists them: CSV with the header `user,host`, without quotes.
struct FleetList {
  struct Row: Equatable {
    var user: String
    /// The board's host name. It is the name of a folder, too: `a-z`, `0-9` and `-`, at most 63.
    var host: String
  }

  static let maximum = 10_000
  let rows: [Row]

  /// - Throws: `CommandError` with the line that is wrong. A host is listed once; a user may have several.
  init(_ text: String) throws {
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    guard lines.first == "user,host" else { throw CommandError("line 1 must be: user,host") }
    var rows: [Row] = []
    var hosts: Set<String> = []
    for (number, line) in zip(2..., lines.dropFirst()) where !line.isEmpty {
      let row = try Self.row(line, number)
      guard hosts.insert(row.host).inserted else {
        throw CommandError("line \(number): the host \(row.host) is listed twice")
      }
      rows.append(row)
      guard rows.count <= Self.maximum else { throw CommandError("there are more than \(Self.maximum) boards") }
    }
    guard !rows.isEmpty else { throw CommandError("there is no board in the list") }
    self.rows = rows
  }

  private static func row(_ line: Substring, _ number: Int) throws -> Row {
    let fields = line.split(separator: ",", omittingEmptySubsequences: false)
    guard fields.count == 2, !line.contains("\"") else {
      throw CommandError("line \(number) must be a user, a comma and a host, without quotation marks")
    }
    let user: String
    do { user = try validated(String(fields[0]), as: "a user") } catch {
      throw CommandError("line \(number): \(error.message)")
    }
    guard isHost(fields[1]) else {
      throw CommandError("line \(number): a host has 1 to 63 of a-z, 0-9 and \"-\", and does not begin with \"-\"")
    }
    return Row(user: user, host: String(fields[1]))
  }

  /// Boards have names of the same form.
  static func isHost(_ text: Substring) -> Bool {
    (1...63).contains(text.utf8.count) && text.first != "-"
      && text.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
  }
}
