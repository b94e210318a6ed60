// SPDX-License-Identifier: Apache-2.0
import Cryptography

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// The fields of an `application/x-www-form-urlencoded` body. At most 64 fields, each name at most once.
struct Form: Sendable, Equatable {
  private var fields: [String: String] = [:]

  static let mediaType = "application/x-www-form-urlencoded"

  /// Whether a header names this media type.
  /// - Parameter header: the value of `Content-Type`, with or without parameters.
  static func isMediaType(_ header: String?) -> Bool {
    guard let name = header?.prefix(while: { $0 != ";" }) else { return false }
    let words = name.split { $0 == " " || $0 == "\t" }
    return words.count == 1 && words[0].lowercased() == mediaType
  }

  enum FormError: Error, Equatable, Sendable, CustomStringConvertible {
    case badEncoding, repeated(String), tooMany

    var description: String {
      switch self {
      case .badEncoding: "The form is not percent-encoded UTF-8, or a character has more than 30 combining marks"
      case .repeated(let name): "\"\(name)\" is present twice"
      case .tooMany: "The form has more than 64 fields"
      }
    }
  }

  /// An empty form.
  init() {}

  init(parsing bytes: [UInt8]) throws(FormError) {
    guard !bytes.isEmpty else { return }
    let pairs = bytes.split(separator: UInt8(ascii: "&"), maxSplits: 64)
    guard pairs.count <= 64 else { throw .tooMany }
    // Only in a form, a plus sign means a space.
    for pair in pairs.map({ $0.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 } }) {
      let halves = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = percentDecoded(halves[0]), let value = percentDecoded(halves.count == 2 ? halves[1] : []) else {
        throw .badEncoding
      }
      guard fields[name] == nil else { throw .repeated(name) }
      fields[name] = value
    }
  }

  /// The value of a field. An empty value counts as absent (RFC 6749 §3.2).
  subscript(_ name: String) -> String? {
    fields[name].flatMap { $0.isEmpty ? nil : $0 }
  }
}
