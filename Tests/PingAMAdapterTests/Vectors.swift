// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSONValues
import Testing

@testable import PingAMAdapter

/// The vectors of the specification, computed there with Python and cross-checked with OpenSSL.
enum Vectors {
  static func all(_ name: String) -> [JSONValue] {
    let value = file(name)
    return value.list ?? [value]
  }

  static func one(_ name: String, _ id: String) -> JSONValue {
    guard let vector = all(name).first(where: { $0["id"]?.text == id }) else { fatalError("no \(id) in \(name)") }
    return vector
  }

  private static func file(_ name: String) -> JSONValue {
    guard let url = Bundle.module.url(forResource: "Fixtures/\(name)", withExtension: "json"),
      let data = try? Data(contentsOf: url), let value = JSONValue(parsing: Array(data))
    else { fatalError("no fixture \(name)") }
    return value
  }
}
