// SPDX-License-Identifier: Apache-2.0
import Foundation
package import JSONValues

/// A schema of `docs/schemas` (JSON Schema, draft 2020-12), and what a value violates of it. Only the keywords that
/// those schemas use are implemented; any other keyword is an error.
package struct JSONSchema: Sendable {
  package struct SchemaError: Error, CustomStringConvertible {
    package let description: String
  }

  private let root: JSONValue

  package init(_ root: JSONValue) { self.root = root }

  /// - Parameter name: of a file in `docs/schemas`, without `.schema.json`.
  package init(named name: String) throws {
    let file = repositoryRoot.appending(path: "docs/schemas/\(name).schema.json")
    guard let root = JSONValue(parsing: Array(try Data(contentsOf: file))) else {
      throw SchemaError(description: "\(file.path) is not JSON")
    }
    self.init(root)
  }

  /// What the line violates, each with its place; empty if it is valid.
  package func violations(in line: String) throws -> [String] {
    guard let value = JSONValue(parsing: Array(line.utf8)) else { return ["not JSON: \(line)"] }
    return try violations(in: value)
  }

  package func violations(in value: JSONValue) throws -> [String] { try check(value, root, at: "") }

  /// - Parameter schema: a part of this one.
  package func violations(in value: JSONValue, of schema: JSONValue) throws -> [String] {
    try check(value, schema, at: "")
  }

  private func check(_ value: JSONValue, _ schema: JSONValue, at place: String) throws -> [String] {
    if let isAllowed = schema.bool { return isAllowed ? [] : ["\(place): not allowed"] }
    guard case .object(let keywords) = schema else { throw SchemaError(description: "no schema: \(schema.canonical)") }
    return try keywords.sorted { $0.key < $1.key }.flatMap { keyword, argument in
      try check(value, keyword, argument, of: keywords, at: place)
    }
  }

  private func check(
    _ value: JSONValue, _ keyword: String, _ argument: JSONValue, of schema: [String: JSONValue], at place: String
  ) throws -> [String] {
    func require(_ isMet: Bool) -> [String] {
      isMet ? [] : ["\(place): \(keyword) \(argument.canonical) is violated by \(value.canonical.prefix(200))"]
    }
    switch keyword {
    case "$schema", "$comment", "$defs", "title", "description", "then", "else": return []
    case "$ref": return try check(value, definition(argument), at: place)
    case "type": return require((argument.list ?? [argument]).contains { $0.text == value.typeName })
    case "const": return require(value == argument)
    case "enum": return require(argument.list?.contains(value) == true)
    case "minimum": return require(value.integer.map { $0 >= argument.integer ?? .max } ?? true)
    case "maximum": return require(value.integer.map { $0 <= argument.integer ?? .min } ?? true)
    case "minLength": return require(value.text.map { $0.unicodeScalars.count >= argument.integer ?? .max } ?? true)
    case "maxLength": return require(value.text.map { $0.unicodeScalars.count <= argument.integer ?? .min } ?? true)
    case "pattern":
      let pattern = try Regex(argument.text ?? "")
      return require(value.text.map { $0.contains(pattern) } ?? true)
    case "maxItems": return require(value.list.map { $0.count <= argument.integer ?? -1 } ?? true)
    case "items":
      return try (value.list ?? []).enumerated().flatMap { try check($1, argument, at: "\(place)[\($0)]") }
    case "required": return require((argument.list ?? []).allSatisfy { value.has($0.text ?? "") })
    case "properties", "additionalProperties":
      return try checkMembers(of: value, keyword, argument, of: schema, at: place)
    case "allOf": return try (argument.list ?? []).flatMap { try check(value, $0, at: place) }
    case "oneOf": return require(try (argument.list ?? []).count { try check(value, $0, at: place).isEmpty } == 1)
    case "if":
      let branch = try check(value, argument, at: place).isEmpty ? "then" : "else"
      return try schema[branch].map { try check(value, $0, at: place) } ?? []
    default: throw SchemaError(description: "the keyword \(keyword) is not implemented")
    }
  }

  private func checkMembers(
    of value: JSONValue, _ keyword: String, _ argument: JSONValue, of schema: [String: JSONValue], at place: String
  ) throws -> [String] {
    guard case .object(let members) = value else { return [] }
    return try members.sorted { $0.key < $1.key }.flatMap { name, member in
      let known = keyword == "properties" ? argument[name] : nil
      let isOther = keyword == "additionalProperties" && schema["properties"]?[name] == nil
      return try (known ?? (isOther ? argument : nil)).map { try check(member, $0, at: "\(place).\(name)") } ?? []
    }
  }

  /// - Parameter reference: a JSON pointer (RFC 6901) into this file; no name in it has a slash or a tilde.
  package func definition(_ reference: JSONValue) throws -> JSONValue {
    let names = (reference.text ?? "").split(separator: "/")
    let found = names.dropFirst().reduce(Optional(root)) { $0?[String($1)] }
    guard names.first == "#", let found else {
      throw SchemaError(description: "no definition \(reference.canonical)")
    }
    return found
  }
}

extension JSONValue {
  fileprivate var typeName: String {
    switch self {
    case .null: "null"
    case .bool: "boolean"
    case .integer: "integer"
    case .fraction: "number"
    case .text: "string"
    case .list: "array"
    case .object: "object"
    }
  }

  fileprivate func has(_ name: String) -> Bool { self[name] != nil }
}

/// The repository of this source file.
let repositoryRoot = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().deletingLastPathComponent()
