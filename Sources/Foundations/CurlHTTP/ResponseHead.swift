// SPDX-License-Identifier: Apache-2.0
import DisplayText
import HTTP

/// Assembles the head of a response from the lines that libcurl reads (RFC 9112 §§2–5). Interim 1xx heads and trailers
/// count towards the limit and are discarded.
struct ResponseHead {
  /// The maximum size of all heads and trailers together.
  static let maximumBytes = 64 << 10

  private(set) var response = HTTPResponse(status: 0)
  private(set) var isComplete = false
  private var byteCount = 0

  /// - Returns: whether this line completed the head.
  mutating func take(line: UnsafeRawBufferPointer) throws(HTTPTransportError) -> Bool {
    byteCount += line.count
    guard byteCount <= Self.maximumBytes else { throw .tooLarge(limit: Self.maximumBytes) }
    guard !isComplete else { return false }
    let content = line.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
    if content.isEmpty {
      // No head follows: the connection has another protocol now, which was not asked for.
      guard response.status != 101 else {
        throw .malformed("status 101 (Switching Protocols), which was not requested")
      }
      isComplete = response.status >= 200
      return isComplete
    }
    if content.starts(with: "HTTP/".utf8) {
      response = HTTPResponse(status: try status(in: content))
    } else {
      try takeField(content)
    }
    return false
  }

  private func status(in line: Slice<UnsafeRawBufferPointer>) throws(HTTPTransportError) -> Int {
    let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
    guard parts.count >= 2, parts[1].count == 3, let status = Int(String(decoding: parts[1], as: UTF8.self)) else {
      throw .malformed("no status in the status line")
    }
    return status
  }

  private mutating func takeField(_ line: Slice<UnsafeRawBufferPointer>) throws(HTTPTransportError) {
    // A line that starts with white space continues the previous line (RFC 9112 §5.2, obsolete since 2014).
    guard let first = line.first, !first.isBlank, let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
      throw .malformed("a header line without a field name")
    }
    let name = String(decoding: line[..<colon], as: UTF8.self)
    var value = line[(colon + 1)...].drop(while: \.isBlank)
    while let last = value.last, last.isBlank { value.removeLast() }
    let text = String(decoding: value, as: UTF8.self)
    guard !name.hasTooManyCombiningMarks, !text.hasTooManyCombiningMarks else {
      throw .malformed("more than 30 combining marks in a header line")
    }
    // libcurl would decode any other coding even if it was not requested, and a few bytes could expand to a large body.
    guard name.lowercased() != "transfer-encoding" || text.lowercased() == "chunked" else {
      throw .malformed("transfer coding \(text.prefix(32)), which was not requested")
    }
    response.headers[name] = text
  }
}

extension UInt8 {
  fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}
