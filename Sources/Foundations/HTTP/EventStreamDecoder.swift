// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// Decodes the bytes of a `text/event-stream` into events, for any division into chunks (WHATWG HTML §9.2.6).
///
/// Holds one incomplete line and one incomplete event, both bounded. An event that is incomplete at the end of the
/// stream is discarded. `retry:` is ignored: the token chooses its own backoff.
package struct EventStreamDecoder: Sendable {
  /// The maximum length of a line in bytes, without its line end.
  package static let maximumLineBytes = 64 << 10
  /// The maximum total length of the fields of an event in bytes.
  package static let maximumEventBytes = 256 << 10

  /// The number of comment lines so far. Servers send comments as heartbeats, so an increasing number shows that the
  /// stream is alive.
  package private(set) var comments = 0
  /// The `id:` of the last complete event, for resuming (`Last-Event-ID`); empty if there was none.
  package private(set) var lastEventID = ""

  private var line: [UInt8] = []
  private var lineBreakMayContinue = false
  private var isFirstLine = true
  private var event = UnfinishedEvent()
  private var failure: EventStreamError?

  package init() {}

  /// Decodes a chunk and returns the events that it completes.
  /// - Throws: `EventStreamError` when a limit is exceeded, and in every later call: the stream cannot be resumed.
  package mutating func decode(_ chunk: [UInt8]) throws(EventStreamError) -> [ServerSentEvent] {
    if let failure { throw failure }
    do throws(EventStreamError) {
      return try split(chunk)
    } catch {
      (failure, line, event) = (error, [], UnfinishedEvent())
      throw error
    }
  }

  private mutating func split(_ chunk: [UInt8]) throws(EventStreamError) -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    var rest = chunk[...]
    if lineBreakMayContinue, let first = rest.first {
      if first == lineFeed { rest.removeFirst() }
      lineBreakMayContinue = false
    }
    while let end = rest.firstIndex(where: { $0 == lineFeed || $0 == carriageReturn }) {
      try append(rest[..<end])
      if let finished = try endLine() { events.append(finished) }
      let endedInCarriageReturn = rest[end] == carriageReturn
      rest = rest[(end + 1)...]
      if endedInCarriageReturn {
        lineBreakMayContinue = rest.isEmpty
        if rest.first == lineFeed { rest.removeFirst() }
      }
    }
    try append(rest)
    return events
  }

  private mutating func append(_ bytes: ArraySlice<UInt8>) throws(EventStreamError) {
    guard line.count + bytes.count <= Self.maximumLineBytes else {
      throw .lineTooLong(limit: Self.maximumLineBytes)
    }
    line += bytes
  }

  private mutating func endLine() throws(EventStreamError) -> ServerSentEvent? {
    defer {
      line.removeAll(keepingCapacity: line.capacity <= 4096)
      isFirstLine = false
    }
    var content = line[...]
    if isFirstLine, content.starts(with: byteOrderMark) { content.removeFirst(byteOrderMark.count) }
    if content.isEmpty { return dispatch() }
    if content.first == colon {
      comments &+= 1
    } else {
      try event.take(field: content)
    }
    return nil
  }

  private mutating func dispatch() -> ServerSentEvent? {
    defer { event.reset() }
    lastEventID = event.id
    guard event.hasData else { return nil }
    return ServerSentEvent(
      name: event.name.isEmpty ? "message" : event.name,
      data: String(decoding: event.data.dropLast(), as: UTF8.self), id: lastEventID)
  }
}

/// A stream that exceeds a limit. The client must reconnect.
package enum EventStreamError: Error, Equatable, Sendable, CustomStringConvertible {
  case lineTooLong(limit: Int)
  case eventTooLong(limit: Int)
  case tooManyMarks

  package var description: String {
    switch self {
    case .lineTooLong(let limit): "the event stream has a line of more than \(limit) bytes"
    case .eventTooLong(let limit): "the event stream has an event of more than \(limit) bytes"
    case .tooManyMarks: "a character of the event stream has more than 30 combining marks"
    }
  }
}

/// The buffers of WHATWG HTML §9.2.6. The id remains valid after its event.
private struct UnfinishedEvent {
  var name = ""
  var id = ""
  /// All data lines, each followed by a line feed.
  var data: [UInt8] = []
  var hasData: Bool { !data.isEmpty }

  mutating func reset() {
    name = ""
    data = []
  }

  mutating func take(field: ArraySlice<UInt8>) throws(EventStreamError) {
    let separator = field.firstIndex(of: colon) ?? field.endIndex
    var value = field[separator...].dropFirst()
    if value.first == space { value.removeFirst() }
    switch try Self.text(field[..<separator]) {
    case "event": name = try Self.text(value)
    case "data": data += value + [lineFeed]
    case "id" where !value.contains(0): id = try Self.text(value)
    default: break  // §9.2.6: "The field is ignored."
    }
    guard name.utf8.count + id.utf8.count + data.count <= EventStreamDecoder.maximumEventBytes else {
      throw .eventTooLong(limit: EventStreamDecoder.maximumEventBytes)
    }
  }

  private static func text(_ bytes: ArraySlice<UInt8>) throws(EventStreamError) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    guard !text.hasTooManyCombiningMarks else { throw .tooManyMarks }
    return text
  }
}

private let lineFeed = UInt8(ascii: "\n")
private let carriageReturn = UInt8(ascii: "\r")
private let colon = UInt8(ascii: ":")
private let space = UInt8(ascii: " ")
private let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
