// SPDX-License-Identifier: Apache-2.0
import CBench

/// A parser of HTTP/1.1 messages (RFC 9112) with Content-Length, chunked, or without a body.
struct MessageParser {
  struct Head {
    let startLine: String
    private let fields: [(name: String, value: String)]

    fileprivate init(_ text: String) {
      var lines = text.split(separator: "\r\n", omittingEmptySubsequences: true)[...]
      startLine = String(lines.popFirst() ?? "")
      fields = lines.map { line in
        let halves = line.split(separator: ":", maxSplits: 1)
        return (halves[0].lowercased(), halves.count == 2 ? String(halves[1].drop { $0 == " " }) : "")
      }
    }

    /// The status of a response.
    var status: Int { startLine.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0 }

    /// - Parameter name: in lowercase.
    subscript(name: String) -> String? { fields.first { $0.name == name }?.value }
  }

  enum Piece {
    case head(Head)
    case body([UInt8])
    case end
  }

  private enum State {
    case head
    case body(left: Int)
    case chunkSize
    case chunk(left: Int)
    case chunkEnd(isLast: Bool)
    case end
  }

  struct MalformedMessageError: Error {}

  private var bytes: [UInt8] = []
  private var state = State.head

  mutating func append(_ more: some Collection<UInt8>) { bytes += more }

  /// The next piece; nil until more bytes are available.
  mutating func next() throws(MalformedMessageError) -> Piece? {
    while true {
      switch state {
      case .head:
        guard let text = take(through: "\r\n\r\n") else { return nil }
        let head = Head(text)
        if head["transfer-encoding"]?.lowercased() == "chunked" {
          state = .chunkSize
        } else {
          let length = head["content-length"].map { Int($0) ?? -1 } ?? 0
          guard length >= 0 else { throw MalformedMessageError() }
          state = length == 0 ? .end : .body(left: length)
        }
        return .head(head)
      case .body(let left):
        guard !bytes.isEmpty else { return nil }
        let part = take(min(left, bytes.count))
        state = part.count == left ? .end : .body(left: left - part.count)
        return .body(part)
      case .chunkSize:
        guard let line = take(through: "\r\n") else { return nil }
        guard let size = Int(line.prefix { $0.isHexDigit }, radix: 16) else { throw MalformedMessageError() }
        state = size == 0 ? .chunkEnd(isLast: true) : .chunk(left: size)
      case .chunk(let left):
        guard !bytes.isEmpty else { return nil }
        let part = take(min(left, bytes.count))
        state = part.count == left ? .chunkEnd(isLast: false) : .chunk(left: left - part.count)
        return .body(part)
      case .chunkEnd(let isLast):
        guard take(through: "\r\n") != nil else { return nil }
        state = isLast ? .end : .chunkSize
      case .end:
        state = .head
        return .end
      }
    }
  }

  private mutating func take(_ count: Int) -> [UInt8] {
    defer { bytes.removeFirst(count) }
    return Array(bytes[..<count])
  }

  private mutating func take(through mark: StaticString) -> String? {
    let end = bytes.withUnsafeBytes { bytes -> Int? in
      guard let start = bytes.baseAddress,
        let found = bench_find(start, bytes.count, mark.utf8Start, mark.utf8CodeUnitCount)
      else { return nil }
      return found - start + mark.utf8CodeUnitCount
    }
    return end.map { String(decoding: take($0).dropLast(mark.utf8CodeUnitCount), as: UTF8.self) }
  }
}
