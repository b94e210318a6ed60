// SPDX-License-Identifier: Apache-2.0
package import HTTP

/// What the device process asks the network process for: the first message of a connection. The connection is for this
/// order alone; ending it ends the order.
package enum RelayOrder: Equatable, Sendable {
  /// One request with its whole response: `head`, then `chunk`s, then `end`; or `failed`.
  case send(HTTPRequest, RelayTrust)
  /// The same with the body as it arrives.
  case stream(HTTPRequest, RelayTrust)
  /// Subscriptions at a broker over one connection: `subscribed` or `mayNotRead` for each topic, and `message`s, each
  /// of which waits for its `RelayReceipt`; at last `ended`. Messages that the broker has kept may come first.
  case subscribe(RelaySubscription)
  /// A listener for login hints at a numeric address: `up`, then a `hint` for each.
  case listen(String)
  /// Nothing but a connection that ends with the network process: `up`.
  case attend

  /// The first byte of an order.
  static let version: UInt8 = 3
  /// The maximum size of an order in bytes: of a body, a file of authorities, and header fields.
  package static let longest = 1 << 20

  package var bytes: [UInt8] {
    var writer = RelayWriter()
    writer.put(Self.version)
    switch self {
    case .send(let request, let trust):
      writer.put(UInt8(0))
      writer.put(request)
      trust.write(to: &writer)
    case .stream(let request, let trust):
      writer.put(UInt8(1))
      writer.put(request)
      trust.write(to: &writer)
    case .subscribe(let subscription):
      writer.put(UInt8(2))
      subscription.write(to: &writer)
    case .listen(let address):
      writer.put(UInt8(3))
      writer.put(address)
    case .attend: writer.put(UInt8(4))
    }
    return writer.bytes
  }

  /// Decodes arbitrary bytes.
  package init(_ bytes: [UInt8]) throws(RelayError) {
    var reader = RelayReader(bytes)
    guard try reader.byte() == Self.version else { throw .version }
    switch try reader.byte() {
    case 0: self = .send(try reader.request(), try RelayTrust(&reader))
    case 1: self = .stream(try reader.request(), try RelayTrust(&reader))
    case 2: self = .subscribe(try RelaySubscription(&reader))
    case 3: self = .listen(try reader.text(atMost: 64))
    case 4: self = .attend
    case let kind: throw .malformed("an order of kind \(kind)")
    }
    try reader.end()
  }
}

/// The rules for one server's certificate (`ServerTrust`), with the authorities themselves: the network process need
/// not be able to read the file.
package struct RelayTrust: Hashable, Sendable {
  /// The maximum size of a file of authorities in bytes.
  package static let longestAuthorities = 512 << 10

  package var pins: [String]
  /// PEM; nil for only those of the system.
  package var authorities: [UInt8]?
  package var earliestNow: Int64
  package var vouchedNow: Int64

  package init(_ trust: ServerTrust, authorities: [UInt8]?) {
    pins = trust.pins
    self.authorities = authorities
    earliestNow = trust.earliestNow
    vouchedNow = trust.vouchedNow
  }

  func write(to writer: inout RelayWriter) {
    writer.put(all: pins) { $0.put($1) }
    writer.put(authorities) { $0.put($1) }
    writer.put(earliestNow)
    writer.put(vouchedNow)
  }

  init(_ reader: inout RelayReader) throws(RelayError) {
    pins = try reader.list(atMost: 64) { reader throws(RelayError) in try reader.text(atMost: 128) }
    authorities = try reader.optional { reader throws(RelayError) in
      try reader.bytes(atMost: Self.longestAuthorities)
    }
    earliestNow = try reader.number()
    vouchedNow = try reader.number()
  }

  /// - Parameter authorityFile: a file with `authorities`.
  package func serverTrust(authorityFile: String?) -> ServerTrust {
    ServerTrust(pins: pins, authorityFile: authorityFile, earliestNow: earliestNow, vouchedNow: vouchedNow)
  }
}

/// Acknowledges a message of a subscription.
package struct RelayReceipt: Equatable, Sendable {
  /// The size of its message in bytes.
  package static let size = 1

  /// Whether the message is durable.
  package var isTaken: Bool

  package init(isTaken: Bool) { self.isTaken = isTaken }

  package var bytes: [UInt8] { [isTaken ? 1 : 0] }

  package init(_ bytes: [UInt8]) throws(RelayError) {
    var reader = RelayReader(bytes)
    isTaken = try reader.flag()
    try reader.end()
  }
}

extension RelayWriter {
  fileprivate mutating func put(_ request: HTTPRequest) {
    put(request.method.rawValue)
    put(request.url)
    put(request.headers)
    put(request.body)
    put(request.deadline.components.seconds * 1000 + request.deadline.components.attoseconds / 1_000_000_000_000_000)
    put(request.maximumBodyBytes)
    put(request.takesBeginning)
    put(request.idleSeconds)
  }

  mutating func put(_ headers: HTTPHeaders) {
    put(all: headers.fields.sorted { $0.key < $1.key }) {
      $0.put($1.key)
      $0.put($1.value)
    }
  }
}

extension RelayReader {
  fileprivate mutating func request() throws(RelayError) -> HTTPRequest {
    guard let method = HTTPRequest.Method(rawValue: try text(atMost: 16)) else { throw .malformed("its method") }
    var request = HTTPRequest(method, try text(atMost: 16 << 10))
    request.headers = try headers(atMost: 256 << 10)
    request.body = try bytes(atMost: RelayOrder.longest)
    request.deadline = .milliseconds(try number(0...86_400_000))
    request.maximumBodyBytes = try number(0...(64 << 20))
    request.takesBeginning = try flag()
    request.idleLimit = .seconds(try number(0...HTTPRequest.maximumIdleSeconds))
    return request
  }

  /// - Parameter limit: the maximum size of all fields in bytes.
  mutating func headers(atMost limit: Int) throws(RelayError) -> HTTPHeaders {
    var (headers, rest) = (HTTPHeaders(), limit)
    for _ in 0..<(try number(0...1024)) {
      let name = try text(atMost: rest)
      let value = try text(atMost: max(0, rest - name.utf8.count))
      rest -= name.utf8.count + value.utf8.count
      guard rest >= 0 else { throw .malformed("header fields of more than \(limit) bytes") }
      headers[name] = value
    }
    return headers
  }
}
