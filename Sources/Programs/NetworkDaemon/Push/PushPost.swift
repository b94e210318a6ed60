// SPDX-License-Identifier: Apache-2.0
/// A strict parser for the one HTTP request of a connection to the push listener (RFC 9112): ambiguous input is
/// rejected. The body is counted and discarded; its content is not used.
struct PushPost {
  enum Status: Int {
    case ok = 200
    case bad = 400
    case notFound = 404
    case notAllowed = 405
    case tooSlow = 408
    case tooLarge = 413
    case tooMany = 429
    case headTooLarge = 431

    /// The HTTP response; it discloses nothing about accounts.
    var response: String {
      let reason =
        switch self {
        case .ok: "OK"
        case .bad: "Bad Request"
        case .notFound: "Not Found"
        case .notAllowed: "Method Not Allowed\r\nAllow: POST"
        case .tooSlow: "Request Timeout"
        case .tooLarge: "Content Too Large"
        case .tooMany: "Too Many Requests"
        case .headTooLarge: "Request Header Fields Too Large"
        }
      return "HTTP/1.1 \(rawValue) \(reason)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    }
  }

  static let target = "/push"
  /// The maximum size of the request line and all header fields, in bytes.
  static let longestHead = 8 << 10
  /// The maximum size of the body, in bytes. A challenge with all texts at their maximum length has about 6 KiB.
  static let longestBody = 16 << 10

  private var head: [UInt8] = []
  /// The number of body bytes still missing; nil while the header is read.
  private var missing: Int?

  /// - Returns: nil while more input is needed.
  mutating func take(_ bytes: some Collection<UInt8>) -> Status? {
    if let missing { return take(body: bytes.count, of: missing) }
    let read = head.count
    head += bytes
    guard let end = Self.end(of: head, beyond: read) else { return head.count > Self.longestHead ? .headTooLarge : nil }
    guard end <= Self.longestHead else { return .headTooLarge }
    switch Self.bodyLength(in: head[..<end]) {
    case .failure(let refusal): return refusal.status
    case .success(let length): return take(body: head.count - end, of: length)
    }
  }

  /// Counts body bytes. Bytes after the announced length are rejected: there is no second request on a connection.
  private mutating func take(body count: Int, of missing: Int) -> Status? {
    self.missing = missing - count
    return count > missing ? .bad : count == missing ? .ok : nil
  }

  /// The index after the empty line that ends the header; nil if it has not arrived.
  /// - Parameter read: the number of bytes already searched.
  private static func end(of head: [UInt8], beyond read: Int) -> Int? {
    guard head.count >= max(4, read + 1) else { return nil }
    return (max(4, read + 1)...head.count).first { head[($0 - 4)..<$0].elementsEqual("\r\n\r\n".utf8) }
  }

  private struct RequestError: Error {
    let status: Status
    init(_ status: Status) { self.status = status }
  }

  private static func bodyLength(in head: ArraySlice<UInt8>) -> Result<Int, RequestError> {
    // Only printable ASCII and spaces: no tab, no bare CR or LF, so that all parsers agree on the lines.
    let text = String(decoding: head.dropLast(4), as: UTF8.self)
    var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)[...]
    guard lines.allSatisfy({ $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } }) else { return .failure(.init(.bad)) }
    let request = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
    guard request.count == 3, isToken(request[0]), request[2] == "HTTP/1.1" else { return .failure(.init(.bad)) }
    guard request[0] == "POST" else { return .failure(.init(.notAllowed)) }
    guard request[1] == target else { return .failure(.init(.notFound)) }
    var fields: [String: [Substring]] = [:]
    for line in lines {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, isToken(parts[0]) else { return .failure(.init(.bad)) }
      let value = parts[1].drop { $0 == " " }
      fields[parts[0].lowercased(), default: []].append(value)
    }
    // Exactly one Host (§3.2) and exactly one length (§6.3), against request smuggling.
    guard fields["host"]?.count == 1, fields["transfer-encoding"] == nil, let lengths = fields["content-length"],
      lengths.count == 1, (1...9).contains(lengths[0].utf8.count),
      lengths[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(lengths[0])
    else { return .failure(.init(.bad)) }
    return length > longestBody ? .failure(.init(.tooLarge)) : .success(length)
  }

  /// Whether the text is a token of RFC 9110 §5.6.2.
  private static func isToken(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"(),/:;<=>?@[\\]{}".utf8.contains($0) }
  }

  /// Reads one request from a connection.
  /// - Parameters:
  ///   - timeLeft: the time left for the whole request.
  ///   - read: waits at most for the given duration; returns no bytes at end of stream, nil on a timeout.
  static func read(timeLeft: () -> Duration, read: (Duration) -> [UInt8]?) -> Status {
    var post = PushPost()
    while true {
      let rest = timeLeft()
      guard rest > .zero, let bytes = read(rest) else { return .tooSlow }
      guard !bytes.isEmpty else { return .bad }
      if let status = post.take(bytes) { return status }
    }
  }
}

/// A token bucket: `capacity` events at once, then one per interval.
package struct TokenBucket: Sendable {
  /// Limits hints to the rate of fast polling, so that a flood does not increase the load.
  package static let ofHints = TokenBucket(capacity: 5, interval: .seconds(3))

  /// Limits how often the network process comes back, which makes all servers connect again.
  package static let ofReturns = TokenBucket(capacity: 20, interval: .seconds(30))

  private let capacity: Int
  private let interval: Duration
  /// When the bucket is full again, on the clock of `take`.
  private var fullAt = Duration.zero

  init(capacity: Int, interval: Duration) {
    self.capacity = capacity
    self.interval = interval
  }

  /// - Parameter now: the time on a monotonic clock.
  package mutating func take(at now: Duration) -> Bool {
    let next = max(fullAt, now) + interval
    guard next - now <= interval * capacity else { return false }
    fullAt = next
    return true
  }
}
