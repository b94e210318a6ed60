public import TOMLKit

/// Reads a TOML table key by key and refuses what is left: a misspelt key must not be silently without effect.
public struct TableReader {
  /// What is wrong, with the key's path.
  public struct Refusal: Error, Equatable, Sendable {
    public let why: String
    public init(why: String) { self.why = why }
  }

  private let table: TOMLTable
  private let path: String
  private var known: Set<String> = []

  public init(_ table: TOMLTable) {
    self.init(table, path: "")
  }

  private init(_ table: TOMLTable, path: String) {
    self.table = table
    self.path = path
  }

  public mutating func text(_ key: String) throws(Refusal) -> String {
    guard let text = try optionalText(key) else { throw missing(key) }
    return text
  }

  public mutating func optionalText(_ key: String) throws(Refusal) -> String? {
    known.insert(key)
    guard let value = table[key] else { return nil }
    guard let text = value.string else { throw Refusal(why: "\"\(path)\(key)\" must be a text in quotes") }
    return text
  }

  /// Texts in a list with at least one.
  public mutating func texts(_ key: String) throws(Refusal) -> [String] {
    known.insert(key)
    guard let value = table[key] else { throw missing(key) }
    let texts = value.array.map { array in array.compactMap(\.string) } ?? []
    guard !texts.isEmpty, texts.count == value.array?.count else {
      throw Refusal(why: "\"\(path)\(key)\" must be a list of texts in quotes")
    }
    return texts
  }

  public mutating func number(_ key: String, _ bounds: ClosedRange<Int>) throws(Refusal) -> Int {
    known.insert(key)
    guard let value = table[key] else { throw missing(key) }
    guard let number = value.int, bounds.contains(number) else {
      throw Refusal(
        why: "\"\(path)\(key)\" must be a whole number from \(bounds.lowerBound) to \(bounds.upperBound)")
    }
    return number
  }

  public mutating func flag(_ key: String, default fallback: Bool) throws(Refusal) -> Bool {
    known.insert(key)
    guard let value = table[key] else { return fallback }
    guard let flag = value.bool else { throw Refusal(why: "\"\(path)\(key)\" must be true or false") }
    return flag
  }

  public mutating func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ key: String, of type: Choice.Type, default fallback: Choice? = nil
  ) throws(Refusal) -> Choice {
    guard let text = try optionalText(key) else {
      guard let fallback else { throw missing(key) }
      return fallback
    }
    guard let choice = Choice(rawValue: text) else {
      let choices = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
      throw Refusal(why: "\"\(path)\(key)\" is \"\(text)\"; it can be \(choices)")
    }
    return choice
  }

  /// Milliseconds, or seconds where the key ends in `_s`. Left as it is if there is no such key.
  public mutating func duration(
    _ key: String, _ bounds: ClosedRange<Int>, _ duration: inout Duration
  ) throws(Refusal) {
    known.insert(key)
    guard let value = table[key] else { return }
    let unit = key.hasSuffix("_s") ? "s" : "ms"
    guard let number = value.int else { throw Refusal(why: "\"\(path)\(key)\" must be a whole number") }
    guard bounds.contains(number) else {
      throw Refusal(
        why: "\"\(path)\(key)\" is \(number); it must be \(bounds.lowerBound) to \(bounds.upperBound) \(unit)")
    }
    duration = unit == "s" ? .seconds(number) : .milliseconds(number)
  }

  /// For what is wrong with a value that is well-formed.
  public func refusal(_ key: String, _ why: String) -> Refusal { Refusal(why: "\"\(path)\(key)\" \(why)") }

  /// Whether there is something under `key`.
  public mutating func has(_ key: String) -> Bool {
    known.insert(key)
    return table[key] != nil
  }

  /// The table under `key`, empty if there is none.
  public mutating func table(_ key: String) throws(Refusal) -> TableReader {
    known.insert(key)
    guard let value = table[key] else { return TableReader(TOMLTable(), path: "\(path)\(key).") }
    guard let inner = value.table else { throw Refusal(why: "\"\(path)\(key)\" must be a table") }
    return TableReader(inner, path: "\(path)\(key).")
  }

  /// - Throws: if the table has a key that nobody asked for.
  public func finish() throws(Refusal) {
    for key in table.keys.sorted() where !known.contains(key) {
      let nearest = known.min { ($0.distance(to: key), $0) < ($1.distance(to: key), $1) }
      let hint = nearest.map { "nearest is \"\(path)\($0)\"; " } ?? ""
      throw Refusal(why: "unknown key \"\(path)\(key)\"; \(hint)known here: \(known.sorted().joined(separator: ", "))")
    }
  }

  /// Where a key is missing there may be one that was meant to be it.
  private func missing(_ key: String) -> Refusal {
    let unknown = table.keys.filter { !known.contains($0) && $0.distance(to: key) <= max(2, key.count / 2) }
    let nearest = unknown.min { ($0.distance(to: key), $0) < ($1.distance(to: key), $1) }
    return refusal(key, "is missing" + (nearest.map { "; is \"\(path)\($0)\" meant to be it?" } ?? ""))
  }
}

extension String {
  /// How many characters have to be put in, left out or changed to make the other (Levenshtein).
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
