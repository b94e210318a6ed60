// SPDX-License-Identifier: Apache-2.0
/// Keys that may be missing: nil then.
extension TableReader {
  package mutating func optionalNumber(_ key: String) throws(TableError) -> Int? {
    guard let value = value(key) else { return nil }
    guard let number = value.integer else { throw refusal(key, "must be a whole number") }
    return number
  }

  package mutating func optionalFlag(_ key: String) throws(TableError) -> Bool? {
    guard let value = value(key) else { return nil }
    guard let flag = value.boolean else { throw refusal(key, "must be true or false") }
    return flag
  }

  /// An array of strings, which may be empty.
  package mutating func optionalTexts(_ key: String) throws(TableError) -> [String]? {
    guard let value = value(key) else { return nil }
    let texts = value.array.map { $0.compactMap(\.string) }
    guard let texts, texts.count == value.array?.count else {
      throw refusal(key, "must be a list of strings in quotes")
    }
    return texts
  }

  /// A table of strings, whose keys are not known in advance.
  package mutating func optionalTextTable(_ key: String) throws(TableError) -> [String: String]? {
    guard let value = value(key) else { return nil }
    let texts = value.table.map { $0.compactMapValues(\.string) }
    guard let texts, texts.count == value.table?.count else {
      throw refusal(key, "must be a table of strings in quotes")
    }
    return texts
  }

  /// What `read` makes of a table that has no unknown keys.
  package mutating func optionalTable<Contents>(
    _ key: String, _ read: (inout TableReader) throws(TableError) -> Contents
  ) throws(TableError) -> Contents? {
    guard has(key) else { return nil }
    var inner = try table(key)
    let contents = try read(&inner)
    try inner.finish()
    return contents
  }

  /// What `read` makes of each table of an array; none of them has unknown keys.
  package mutating func optionalTables<Contents>(
    _ key: String, _ read: (inout TableReader) throws(TableError) -> Contents
  ) throws(TableError) -> [Contents]? {
    guard let value = value(key) else { return nil }
    guard let tables = value.array else { throw refusal(key, "must be a list of tables, each below [[\(path)\(key)]]") }
    var contents: [Contents] = []
    for (index, element) in tables.enumerated() {
      guard let table = element.table else { throw refusal(key, "has an element that is not a table") }
      var inner = TableReader(table, path: "\(path)\(key)[\(index)].")
      contents.append(try read(&inner))
      try inner.finish()
    }
    return contents
  }
}
