// SPDX-License-Identifier: Apache-2.0
import Foundation
package import JSONValues

/// The OpenAPI description of the portal API, and what a response violates of it.
package struct OpenAPIDescription: Sendable {
  package let root: JSONValue
  private let schema: JSONSchema

  package init() throws {
    let file = repositoryRoot.appending(path: "Sources/Server/TokenServerHTTP/Portal/portal-api.openapi.json")
    guard let root = JSONValue(parsing: Array(try Data(contentsOf: file))) else {
      throw JSONSchema.SchemaError(description: "\(file.path) is not JSON")
    }
    self.root = root
    schema = JSONSchema(root)
  }

  private var paths: [String: JSONValue] {
    if case .object(let paths) = root["paths"] { paths } else { [:] }
  }

  /// `METHOD /path/{parameter}`.
  package var operations: Set<String> {
    Set(
      paths.flatMap { path, item -> [String] in
        guard case .object(let operations) = item else { return [] }
        return operations.keys.map { "\($0.uppercased()) \(path)" }
      })
  }

  /// A schema of `components`.
  package func schema(named name: String) throws -> JSONValue {
    try schema.definition(.text("#/components/schemas/\(name)"))
  }

  /// The schema of the body of a request; nil for an operation without one.
  package func body(of method: String, _ path: String, type: String) throws -> JSONValue? {
    guard let body = paths[path]?[method.lowercased()]?["requestBody"]?["content"]?[type]?["schema"] else { return nil }
    return try body["$ref"].map(schema.definition) ?? body
  }

  /// What a response violates: its status must be described, and its body must have the described form and no other
  /// members.
  /// - Parameter path: as requested.
  package func violations(in body: [UInt8], status: Int, of method: String, _ path: String) throws -> [String] {
    let words = path.prefix { $0 != "?" }.split(separator: "/")
    let template = paths.keys.first { template in
      let names = template.split(separator: "/")
      return names.count == words.count && zip(names, words).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
    guard let template, let responses = paths[template]?[method.lowercased()]?["responses"] else {
      return ["\(method) \(path) is not described"]
    }
    guard var response = responses["\(status)"] ?? (status < 400 ? nil : responses["default"]) else {
      return ["\(method) \(path): the status \(status) is not described"]
    }
    if let reference = response["$ref"] { response = try schema.definition(reference) }
    guard let content = response["content"]?["application/json"]?["schema"] else {
      return body.isEmpty ? [] : ["\(method) \(path): a body that is not described"]
    }
    guard let value = JSONValue(parsing: body) else { return ["\(method) \(path): no JSON"] }
    return try schema.violations(in: value, of: closed(content)).map { "\(method) \(path) \(status)\($0)" }
  }

  /// The schema without references, which permits no members that it does not describe.
  private func closed(_ schema: JSONValue) throws -> JSONValue {
    if let reference = schema["$ref"] { return try closed(try self.schema.definition(reference)) }
    guard case .object(var keywords) = schema else { return schema }
    if case .object(let properties) = keywords["properties"] {
      keywords["properties"] = .object(try properties.mapValues(closed))
      keywords["additionalProperties"] = .bool(false)
    }
    keywords["items"] = try keywords["items"].map(closed)
    return .object(keywords)
  }
}
