/// Reads the one HTTP request of a connection to the push listener (RFC 9112), as strictly as it can be read: whatever
/// may be meant in two ways is refused. The body is counted and let go; nothing in it is believed.
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

    /// Says nothing about what is known here.
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
  /// Bytes of the request line and all fields.
  static let longestHead = 8 << 10
  /// A challenge with every text at its longest has some 6 KiB.
  static let longestBody = 16 << 10

  private var head: [UInt8] = []
  /// Bytes of the body that are to come; nil while the head is read.
  private var missing: Int?

  /// - Returns: nil while more is needed.
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

  /// More than was announced is another request, and there is none.
  private mutating func take(body count: Int, of missing: Int) -> Status? {
    self.missing = missing - count
    return count > missing ? .bad : count == missing ? .ok : nil
  }

  /// Behind the empty line.
  /// - Parameter read: so much has been looked through.
  private static func end(of head: [UInt8], beyond read: Int) -> Int? {
    guard head.count >= max(4, read + 1) else { return nil }
    return (max(4, read + 1)...head.count).first { head[($0 - 4)..<$0].elementsEqual("\r\n\r\n".utf8) }
  }

  private struct Refusal: Error {
    let status: Status
    init(_ status: Status) { self.status = status }
  }

  private static func bodyLength(in head: ArraySlice<UInt8>) -> Result<Int, Refusal> {
    // Visible ASCII and blanks alone: no tab, no bare CR or LF, nothing that two readers read in two ways.
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
    // One Host (§3.2); a length said once and in one way (§6.3), or two readers see two requests.
    guard fields["host"]?.count == 1, fields["transfer-encoding"] == nil, let lengths = fields["content-length"],
      lengths.count == 1, (1...9).contains(lengths[0].utf8.count),
      lengths[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(lengths[0])
    else { return .failure(.init(.bad)) }
    return length > longestBody ? .failure(.init(.tooLarge)) : .success(length)
  }

  /// RFC 9110 §5.6.2.
  private static func isToken(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"(),/:;<=>?@[\\]{}".utf8.contains($0) }
  }

  /// One connection, from its first byte to the answer.
  /// - Parameters:
  ///   - timeLeft: of all that the caller has.
  ///   - read: waits at most so long; empty when the caller has finished, nil when nothing came.
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

/// So many at once, and then no more than one in each interval.
struct TokenBucket {
  private let capacity: Int
  private let interval: Duration
  /// When it will be full again, on the clock of `take`.
  private var fullAt = Duration.zero

  init(capacity: Int, interval: Duration) {
    self.capacity = capacity
    self.interval = interval
  }

  /// - Parameter now: on any clock that goes forward.
  mutating func take(at now: Duration) -> Bool {
    let next = max(fullAt, now) + interval
    guard next - now <= interval * capacity else { return false }
    fullAt = next
    return true
  }
}
