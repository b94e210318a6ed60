// SPDX-License-Identifier: Apache-2.0
import CTOMLPlusPlus

extension TOMLSyntax {
  /// Parses a configuration.
  /// - Throws: the first error, with its line and column: a text outside of the accepted subset of TOML, a key that is
  ///   defined twice, a number beyond 64 bits.
  package static func parse(_ text: String) throws(ParseError) -> [String: TOMLValue] {
    try check(text)
    let builder = TreeBuilder()
    var error = approval_toml_error()
    var text = text
    let status = text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        builder.withVisitor { visitor in
          approval_toml_parse(characters.baseAddress, characters.count, visitor, &error)
        }
      }
    }
    guard status == 0 else {
      let what = withUnsafeBytes(of: error.what) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      throw ParseError(line: Int(error.line), column: Int(error.column), what: what)
    }
    return builder.document
  }
}

/// Builds the values of a document from the calls of the library.
private final class TreeBuilder {
  private struct Container {
    let isTable: Bool
    var key = ""
    var members: [String: TOMLValue] = [:]
    var elements: [TOMLValue] = []

    var value: TOMLValue { isTable ? .table(members) : .array(elements) }
  }

  private(set) var document: [String: TOMLValue] = [:]
  private var open: [Container] = []

  func withVisitor<Result>(_ body: (UnsafePointer<approval_toml_visitor>) -> Result) -> Result {
    var visitor = approval_toml_visitor(
      context: Unmanaged.passUnretained(self).toOpaque(),
      key: { TreeBuilder.of($0).name($1, $2) },
      string: { TreeBuilder.of($0).add(.string(TreeBuilder.text($1, $2))) },
      integer: { TreeBuilder.of($0).add(.integer(Int($1))) },
      boolean: { TreeBuilder.of($0).add(.boolean($1)) },
      begin: { TreeBuilder.of($0).open.append(Container(isTable: $1)) },
      end: { TreeBuilder.of($0).close() })
    return withExtendedLifetime(self) { body(&visitor) }
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> TreeBuilder {
    guard let context else { preconditionFailure("toml++ is called with a context") }
    return Unmanaged<TreeBuilder>.fromOpaque(context).takeUnretainedValue()
  }

  private static func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
  }

  private func name(_ start: UnsafePointer<CChar>?, _ count: Int) {
    guard !open.isEmpty else { return }
    open[open.count - 1].key = Self.text(start, count)
  }

  private func add(_ value: TOMLValue) {
    guard let container = open.last else { return }
    if container.isTable {
      open[open.count - 1].members[container.key] = value
    } else {
      open[open.count - 1].elements.append(value)
    }
  }

  private func close() {
    guard let container = open.popLast() else { return }
    if open.isEmpty { document = container.members } else { add(container.value) }
  }
}
