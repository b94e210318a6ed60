// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import ReferenceProtocol
import ServerBackends
import Synchronization

/// Receives hints from the token server: by server-sent events, or by long polling if a proxy blocks streams.
struct EventFeed: Sendable {
  /// The server sends a heartbeat every 20 s; a stream without data for more than two heartbeats is dead.
  static let silence = Duration.seconds(45)
  /// How long a stream may be silent at first if the one before it was, or if long polling was used before.
  static let firstSilence = Duration.seconds(5)
  /// The number of streams that ended without a single byte before long polling is used.
  static let silentStreamsBeforePolling = 2
  /// How long long polling is used before a stream is tried again: a proxy may have blocked it for a while.
  static let pollingTime = Duration.seconds(3600)

  /// The minimum time from the beginning of one long poll to that of the next: a server that does not wait with its
  /// responses must not cause a request, with a signature, for each.
  static let pollInterval = Duration.seconds(1)

  /// The minimum time between two renewals of the access token, which a server could otherwise cause as often as it
  /// sends events.
  static let renewalInterval = Duration.seconds(1)

  /// More events than this in a second wait, so that the server waits, too: reading one costs more than sending it.
  static let eventsPerSecond = 100

  let client: DeviceClient
  let environment: TokenEnvironment
  let memory: Memory

  /// State that is kept across connections.
  final class Memory: Sendable {
    private let state = Mutex((cursor: String?.none, silentStreams: 0, pollsUntil: MonotonicInstant?.none))

    var cursor: String? {
      get { state.withLock { $0.cursor } }
      // The cursor is sent in a URL and a header field: an invalid one would make every request fail.
      set { if newValue?.isCursor ?? true { state.withLock { $0.cursor = newValue } } }
    }

    var silentStreams: Int {
      get { state.withLock { $0.silentStreams } }
      set { state.withLock { $0.silentStreams = newValue } }
    }

    /// When a stream is tried again; nil while streams are used.
    var pollsUntil: MonotonicInstant? {
      get { state.withLock { $0.pollsUntil } }
      set { state.withLock { $0.pollsUntil = newValue } }
    }
  }

  func run(_ yield: @escaping @Sendable (Hint) -> Void) async throws {
    if memory.silentStreams >= Self.silentStreamsBeforePolling {
      let end = memory.pollsUntil ?? environment.now + Self.pollingTime
      memory.pollsUntil = end
      try await poll(until: end, yield)
      memory.pollsUntil = nil
      // One stream is enough to find out.
      memory.silentStreams = Self.silentStreamsBeforePolling - 1
    }
    try await stream(yield)
  }

  // MARK: Server-sent events

  private func stream(_ yield: @escaping @Sendable (Hint) -> Void) async throws {
    var headers: HTTPHeaders = ["Accept": "text/event-stream"]
    headers["Last-Event-ID"] = memory.cursor
    let stream = try await client.stream("/events", headers: headers)
    let result: Result<Void, any Error>
    do { result = .success(try await follow(stream, yield)) } catch { result = .failure(error) }
    await client.streamEnded()
    try result.get()
  }

  /// Reads the stream to its end.
  private func follow(_ stream: HTTPResponseStream, _ yield: @escaping @Sendable (Hint) -> Void) async throws {
    guard stream.headers["Content-Type"]?.lowercased().hasPrefix("text/event-stream") == true else {
      memory.silentStreams = Self.silentStreamsBeforePolling
      throw TokenServerError.unreachable("the response is not an event stream; using long polling instead")
    }
    yield(.connected)
    let pulse = Pulse(environment.now)
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        let (beats, beating) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        group.addTask { try await read(stream, pulse, beating, yield) }
        group.addTask { try await watch(pulse) }
        group.addTask {
          for await _ in beats where await client.renewExpiringToken() {
            try await environment.sleep(for: Self.renewalInterval)
          }
          throw CancellationError()
        }
        try await group.next()
      }
    } catch let error as HTTPTransportError { throw TokenServerError(error) }
  }

  private func read(
    _ stream: HTTPResponseStream, _ pulse: Pulse, _ beats: AsyncStream<Void>.Continuation,
    _ yield: @escaping @Sendable (Hint) -> Void
  ) async throws {
    var decoder = EventStreamDecoder()
    var pacer = Pacer(burst: Self.eventsPerSecond)
    for try await chunk in stream.body {
      pulse.beat(at: environment.now)
      memory.silentStreams = 0
      let events: [ServerSentEvent]
      do { events = try decoder.decode(chunk) } catch {
        throw TokenServerError.unreachable("the event stream is malformed: \(error)")
      }
      for event in events {
        let earliest = pacer.earliest(environment.now)
        if earliest > environment.now {
          try await environment.sleep(until: earliest)
          pulse.beat(at: environment.now)
        }
        pacer.note(environment.now)
        if !event.id.isEmpty { memory.cursor = event.id }
        guard let content = try? JSON.decode(DeviceEvent.self, from: Array(event.data.utf8)) else { continue }
        if let nonce = content.dpopNonce { await client.use(nonce: nonce) }
        yield(content.hint)
      }
      // A hint must not find an expired token: that would cost the user a round trip.
      beats.yield()
    }
    // The body of a canceled stream ends without an error, like that of one which the server has closed.
    try Task.checkCancellation()
  }

  private func watch(_ pulse: Pulse) async throws {
    while true {
      let last = pulse.last
      // The server sends the first bytes at once. After a silent stream, or long polls, nothing else brings hints now.
      let limit = pulse.hasBeaten || memory.silentStreams == 0 ? Self.silence : Self.firstSilence
      try await environment.sleep(until: last + limit)
      guard pulse.last == last else { continue }
      memory.silentStreams += pulse.hasBeaten ? 0 : 1
      throw TokenServerError.unreachable("the event stream was silent for \(limit)")
    }
  }

  // MARK: Long polls

  private func poll(until end: MonotonicInstant, _ yield: @Sendable (Hint) -> Void) async throws {
    guard environment.now < end else { return }
    yield(.connected)
    var earliest = environment.now
    while environment.now < end {
      try await environment.sleep(until: earliest)
      earliest = environment.now + Self.pollInterval
      let path = memory.cursor.map { "/events?after=\($0)" } ?? "/events"
      let response = try await client.call(
        .get, path, headers: ["Accept": "application/json", "Prefer": "wait=55"], deadline: .seconds(75))
      guard response.status == 200 else { continue }
      let page = try DeviceClient.decode(EventPage.self, response)
      memory.cursor = page.cursor
      for event in page.events { yield(event.hint) }
    }
  }
}

extension DeviceEvent {
  var hint: Hint {
    switch kind {
    case .request, .requestClosed, .resync: .pendingChanged
    case .profileRevoked, .deviceRevoked, .authenticatorRevoked: .revoked
    }
  }
}

/// When the last data of the stream was received.
private final class Pulse: Sendable {
  private let state: Mutex<(last: MonotonicInstant, hasBeaten: Bool)>

  init(_ start: MonotonicInstant) { state = Mutex((start, false)) }

  var last: MonotonicInstant { state.withLock { $0.last } }
  var hasBeaten: Bool { state.withLock { $0.hasBeaten } }

  func beat(at moment: MonotonicInstant) { state.withLock { $0 = (moment, true) } }
}

extension String {
  /// Whether the text has 1 to 128 unreserved characters of a URI (RFC 3986 §2.3).
  fileprivate var isCursor: Bool {
    (1...128).contains(utf8.count)
      && utf8.allSatisfy {
        $0 < 0x80 && (Character(Unicode.Scalar($0)).isLetter || (0x30...0x39).contains($0)) || "-._~".utf8.contains($0)
      }
  }
}
