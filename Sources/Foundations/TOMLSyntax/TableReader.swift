// SPDX-License-Identifier: Apache-2.0
/// Reads a TOML table key by key and rejects unknown keys, so that a misspelled key is an error.
package struct TableReader {
  /// The error, with the path of the key.
  package struct TableError: Error, Equatable, Sendable {
    package let why: String
    package init(why: String) { self.why = why }
  }

  let table: [String: TOMLValue]
  let path: String
  private(set) var known: Set<String> = []

  package init(_ table: [String: TOMLValue]) {
    self.init(table, path: "")
  }

  init(_ table: [String: TOMLValue], path: String) {
    self.table = table
    self.path = path
  }

  /// The value of `key`, which becomes a known key.
  mutating func value(_ key: String) -> TOMLValue? {
    known.insert(key)
    return table[key]
  }

  package mutating func text(_ key: String) throws(TableError) -> String {
    guard let text = try optionalText(key) else { throw missing(key) }
    return text
  }

  package mutating func optionalText(_ key: String) throws(TableError) -> String? {
    guard let value = value(key) else { return nil }
    guard let text = value.string else { throw TableError(why: "\"\(path)\(key)\" must be a string in quotes") }
    return text
  }

  /// An array of strings with at least one element.
  package mutating func texts(_ key: String) throws(TableError) -> [String] {
    guard let value = value(key) else { throw missing(key) }
    let texts = value.array.map { array in array.compactMap(\.string) } ?? []
    guard !texts.isEmpty, texts.count == value.array?.count else {
      throw TableError(why: "\"\(path)\(key)\" must be a list of strings in quotes")
    }
    return texts
  }

  package mutating func number(_ key: String, _ bounds: ClosedRange<Int>) throws(TableError) -> Int {
    guard let value = value(key) else { throw missing(key) }
    guard let number = value.integer, bounds.contains(number) else {
      throw TableError(
        why: "\"\(path)\(key)\" must be a whole number from \(bounds.lowerBound) to \(bounds.upperBound)")
    }
    return number
  }

  package mutating func flag(_ key: String, default fallback: Bool) throws(TableError) -> Bool {
    guard let value = value(key) else { return fallback }
    guard let flag = value.boolean else { throw TableError(why: "\"\(path)\(key)\" must be true or false") }
    return flag
  }

  package mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ key: String, of type: Choice.Type, default fallback: Choice? = nil
  ) throws(TableError) -> Choice {
    guard let text = try optionalText(key) else {
      guard let fallback else { throw missing(key) }
      return fallback
    }
    guard let choice = Choice(rawValue: text) else {
      let choices = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
      throw TableError(why: "\"\(path)\(key)\" is \"\(text)\"; it can be \(choices)")
    }
    return choice
  }

  /// Reads a duration in milliseconds, or in seconds if the key ends in `_seconds`. `duration` is unchanged if the key
  /// is missing.
  package mutating func duration(
    _ key: String, _ bounds: ClosedRange<Int>, _ duration: inout Duration
  ) throws(TableError) {
    guard let value = value(key) else { return }
    let isInSeconds = key.hasSuffix("_seconds")
    guard let number = value.integer else { throw TableError(why: "\"\(path)\(key)\" must be a whole number") }
    guard bounds.contains(number) else {
      throw TableError(
        why:
          "\"\(path)\(key)\" is \(number); it must be \(bounds.lowerBound) to \(bounds.upperBound) \(isInSeconds ? "s" : "ms")"
      )
    }
    duration = isInSeconds ? .seconds(number) : .milliseconds(number)
  }

  /// An error for a well-formed value that is not acceptable.
  package func refusal(_ key: String, _ why: String) -> TableError { TableError(why: "\"\(path)\(key)\" \(why)") }

  /// Whether the table has the key.
  package mutating func has(_ key: String) -> Bool { value(key) != nil }

  /// The table under `key`; an empty one if the key is missing.
  package mutating func table(_ key: String) throws(TableError) -> TableReader {
    guard let value = value(key) else { return TableReader([:], path: "\(path)\(key).") }
    guard let inner = value.table else { throw TableError(why: "\"\(path)\(key)\" must be a table") }
    return TableReader(inner, path: "\(path)\(key).")
  }

  /// - Throws: if the table has a key by its name of an earlier version.
  package func checkRenamed(_ former: String, to key: String) throws(TableError) {
    guard table[former] == nil else { throw refusal(former, "is now called \"\(path)\(key)\"") }
  }

  /// - Throws: if the table has a key that was never read.
  package func finish() throws(TableError) {
    for key in table.keys.sorted() where !known.contains(key) {
      let nearest = known.min { ($0.distance(to: key), $0) < ($1.distance(to: key), $1) }
      let hint = nearest.map { "nearest is \"\(path)\($0)\"; " } ?? ""
      throw TableError(
        why: "unknown key \"\(path)\(key)\"; \(hint)known here: \(known.sorted().joined(separator: ", "))")
    }
  }

  /// The error for a missing key. It names a similar unknown key, if there is one.
  private func missing(_ key: String) -> TableError {
    let unknown = table.keys.filter { !known.contains($0) && $0.distance(to: key) <= max(2, key.count / 2) }
    let nearest = unknown.min { ($0.distance(to: key), $0) < ($1.distance(to: key), $1) }
    return refusal(key, "is missing" + (nearest.map { "; is \"\(path)\($0)\" a misspelling of it?" } ?? ""))
  }
}

extension String {
  /// The number of characters to insert, delete or replace to turn one string into the other (Levenshtein distance).
  fileprivate func distance(to other: String) -> Int {
    var row = Array(0...other.count)
    for (above, mine) in enumerated() {
      var diagonal = row[0]
      row[0] = above + 1
      for (column, its) in other.enumerated() {
        let changed = diagonal + (mine == its ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = Swift.min(changed, diagonal + 1, row[column] + 1)
      }
    }
    return row[other.count]
  }
}
