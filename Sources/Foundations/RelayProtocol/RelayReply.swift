// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import HTTP
package import MQTT

/// A message of the network process. The device process treats it as it treats the network: authentic to nobody, of any
/// content.
package enum RelayReply: Equatable, Sendable {
  /// The order was read; the first reply to each.
  case accepted
  /// The order cannot be carried out, with the reason.
  case refused(String)
  /// The head of a response; its body is empty.
  case head(HTTPResponse)
  /// A part of a body, not empty.
  case chunk([UInt8])
  /// The end of a body.
  case end(isTruncated: Bool)
  case failed(HTTPTransportError)
  /// The network process attends or listens, as ordered.
  case up
  /// The topic of this index in the order is read.
  case subscribed(Int)
  /// The broker does not permit reading the topic of this index.
  case mayNotRead(Int)
  /// A message of the topic of this index.
  case message([UInt8], of: Int)
  /// A message of this number of bytes was rejected and is lost.
  case oversize(Int)
  case ended(BrokerError)
  case hint

  /// The maximum size of a part of a body in bytes.
  package static let longestChunk = 64 << 10
  /// The maximum size of all header fields of a response in bytes, as for the HTTP client.
  static let longestHeaders = 64 << 10
  /// The maximum size of a message in bytes.
  package static let longest = 80 << 10
  /// In Unicode scalars.
  private static let longestReason = 500

  package var bytes: [UInt8] {
    var writer = RelayWriter()
    switch self {
    case .accepted: writer.put(UInt8(0))
    case .refused(let reason):
      writer.put(UInt8(1))
      writer.put(Self.reason(reason))
    case .head(let response):
      writer.put(UInt8(2))
      writer.put(response.status)
      writer.put(response.headers)
      writer.put(response.certificateExpiry) { $0.put($1) }
    case .chunk(let bytes):
      writer.put(UInt8(3))
      writer.put(bytes)
    case .end(let isTruncated):
      writer.put(UInt8(4))
      writer.put(isTruncated)
    case .failed(let error):
      writer.put(UInt8(5))
      error.write(to: &writer)
    case .up: writer.put(UInt8(6))
    case .message(let bytes, let topic):
      writer.put(UInt8(7))
      writer.put(topic)
      writer.put(bytes)
    case .oversize(let count):
      writer.put(UInt8(8))
      writer.put(count)
    case .ended(let error):
      writer.put(UInt8(9))
      error.write(to: &writer)
    case .hint: writer.put(UInt8(10))
    case .subscribed(let topic):
      writer.put(UInt8(11))
      writer.put(topic)
    case .mayNotRead(let topic):
      writer.put(UInt8(12))
      writer.put(topic)
    }
    return writer.bytes
  }

  /// Decodes arbitrary bytes.
  package init(_ bytes: [UInt8]) throws(RelayError) {
    var reader = RelayReader(bytes)
    switch try reader.byte() {
    case 0: self = .accepted
    case 1: self = .refused(try reader.reason())
    case 2: self = .head(try reader.head())
    case 3:
      let chunk = try reader.bytes(atMost: Self.longestChunk)
      guard !chunk.isEmpty else { throw .malformed("an empty part of a body") }
      self = .chunk(chunk)
    case 4: self = .end(isTruncated: try reader.flag())
    case 5: self = .failed(try HTTPTransportError(&reader))
    case 6: self = .up
    case 7:
      let topic = try reader.topic()
      self = .message(try reader.bytes(atMost: Subscriber.maximumMessageBytes), of: topic)
    case 8: self = .oversize(try reader.number(0...Int(UInt32.max)))
    case 9: self = .ended(try BrokerError(&reader))
    case 10: self = .hint
    case 11: self = .subscribed(try reader.topic())
    case 12: self = .mayNotRead(try reader.topic())
    case let kind: throw .malformed("a reply of kind \(kind)")
    }
    try reader.end()
  }

  /// For messages about a reply that is out of place.
  var name: String {
    switch self {
    case .accepted: "an acceptance"
    case .refused: "a refusal"
    case .head: "a head"
    case .chunk: "a part of a body"
    case .end: "the end of a body"
    case .failed, .ended: "an error"
    case .up, .subscribed, .mayNotRead: "a connection"
    case .message, .oversize: "a message"
    case .hint: "a hint"
    }
  }

  static func reason(_ text: String) -> String { text.sanitized(atMost: longestReason) }
}

extension RelayReader {
  /// The head of a final response, with the bounds of the HTTP client.
  fileprivate mutating func head() throws(RelayError) -> HTTPResponse {
    var response = HTTPResponse(status: try number(200...999))
    response.headers = try headers(atMost: RelayReply.longestHeaders)
    response.certificateExpiry = try optional { reader throws(RelayError) in try reader.number() }
    return response
  }

  fileprivate mutating func topic() throws(RelayError) -> Int { try number(0...(RelaySubscription.mostTopics - 1)) }

  mutating func reason() throws(RelayError) -> String { RelayReply.reason(try text(atMost: 4096)) }
}

extension HTTPTransportError {
  fileprivate func write(to writer: inout RelayWriter) {
    switch self {
    case .noNetwork(let reason): writer.put(0, RelayReply.reason(reason))
    case .unreachable(let reason): writer.put(1, RelayReply.reason(reason))
    case .timedOut(let duration):
      writer.put(UInt8(2))
      writer.put(duration.components.seconds)
    case .untrusted(let reason): writer.put(3, RelayReply.reason(reason))
    case .tooLarge(let limit):
      writer.put(UInt8(4))
      writer.put(limit)
    case .redirected(let target): writer.put(5, RelayReply.reason(target))
    case .malformed(let reason): writer.put(6, RelayReply.reason(reason))
    case .unsendable(let reason): writer.put(7, RelayReply.reason(reason))
    case .canceled: writer.put(UInt8(8))
    }
  }

  fileprivate init(_ reader: inout RelayReader) throws(RelayError) {
    switch try reader.byte() {
    case 0: self = .noNetwork(try reader.reason())
    case 1: self = .unreachable(try reader.reason())
    case 2: self = .timedOut(after: .seconds(try reader.number(0...86_400)))
    case 3: self = .untrusted(try reader.reason())
    case 4: self = .tooLarge(limit: try reader.number(0...Int(UInt32.max)))
    case 5: self = .redirected(to: try reader.reason())
    case 6: self = .malformed(try reader.reason())
    case 7: self = .unsendable(try reader.reason())
    case 8: self = .canceled
    case let kind: throw .malformed("an error of kind \(kind)")
    }
  }
}

extension BrokerError {
  fileprivate func write(to writer: inout RelayWriter) {
    switch self {
    case .unreachable(let reason): writer.put(0, RelayReply.reason(reason))
    case .untrusted(let reason): writer.put(1, RelayReply.reason(reason))
    case .refused(let reason): writer.put(2, RelayReply.reason(reason))
    case .mayNotRead(let topic): writer.put(3, RelayReply.reason(topic))
    case .unusable(let reason): writer.put(4, RelayReply.reason(reason))
    case .notTaken: writer.put(UInt8(5))
    case .closed: writer.put(UInt8(6))
    }
  }

  fileprivate init(_ reader: inout RelayReader) throws(RelayError) {
    switch try reader.byte() {
    case 0: self = .unreachable(try reader.reason())
    case 1: self = .untrusted(try reader.reason())
    case 2: self = .refused(try reader.reason())
    case 3: self = .mayNotRead(topic: try reader.reason())
    case 4: self = .unusable(try reader.reason())
    case 5: self = .notTaken
    case 6: self = .closed
    case let kind: throw .malformed("an error of kind \(kind)")
    }
  }
}

extension RelayWriter {
  fileprivate mutating func put(_ kind: UInt8, _ text: String) {
    put(kind)
    put(text)
  }
}
