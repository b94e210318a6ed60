// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import CurlHTTP
import HTTP
import Testing

@Suite("Streams", .timeLimit(.minutes(5)))
struct StreamTests {
  let server: HostileServer
  let http: CurlHTTPTransport

  init() throws {
    server = try HostileServer()
    http = CurlHTTPTransport(trust: server.trust)
  }

  @Test("Hands events over while they arrive") func handsEventsOverWhileTheyArrive() async throws {
    let stream = try await http.stream(HTTPRequest(.get, server.url("events")))
    #expect(stream.headers["Content-Type"] == "text/event-stream")
    var decoder = EventStreamDecoder()
    var events: [ServerSentEvent] = []
    var chunks = stream.body.makeAsyncIterator()
    // The server pauses here and keeps the connection open. These events must not be delayed until the end.
    while decoder.comments < 2, let chunk = try await chunks.next() { events += try decoder.decode(chunk) }
    #expect(events == [ServerSentEvent(name: "request", data: "one\ntwo", id: "7")])
  }

  @Test("Has no deadline after its head") func hasNoDeadlineAfterItsHead() async throws {
    // On a busy machine the head may come later.
    for deadline in [Duration.milliseconds(200), .seconds(2), .seconds(8)] {
      let request = HTTPRequest(.get, server.url("drip"), deadline: deadline)
      guard let stream = try? await http.stream(request) else { continue }
      var received = 0
      let start = ContinuousClock.now
      for try await chunk in stream.body {
        received += chunk.count
        if received > 1, ContinuousClock.now - start > deadline * 2 { break }
      }
      #expect(received > 1)
      return
    }
    Issue.record("no head in time")
  }

  @Test("Has a deadline for its head", arguments: ["never", "half-head"])
  func hasADeadlineForItsHead(path: String) async throws {
    await #expect(throws: HTTPTransportError.timedOut(after: .milliseconds(200))) {
      try await http.stream(HTTPRequest(.get, server.url(path), deadline: .milliseconds(200)))
    }
  }

  /// The firehose detects when its data is no longer read. The data sent until then is in the buffers of two kernels
  /// and in the buffer; 67 MB remain.
  @Test("Slows the server down instead of buffering") func slowsTheServerDownInsteadOfBuffering() async throws {
    let stream = try await http.stream(HTTPRequest(.get, server.url("firehose")))
    let sent = try #require(Int(try await server.ask("await/stalled")))
    #expect(sent < 16 << 20)
    var received = 0
    for try await chunk in stream.body {
      #expect(chunk.count <= 64 << 10)
      received += chunk.count
    }
    #expect(received == 4096 * 16_376)
  }

  @Test("Delivers what came before the break") func deliversWhatCameBeforeTheBreak() async throws {
    let stream = try await http.stream(HTTPRequest(.get, server.url("close")))
    var received: [UInt8] = []
    let failure = await #expect(throws: HTTPTransportError.self) {
      for try await chunk in stream.body { received += chunk }
    }
    #expect(received == Array("the beginning".utf8))
    guard case .unreachable = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
  }

  @Test("An endless line ends in the decoder") func anEndlessLineEndsInTheDecoder() async throws {
    let stream = try await http.stream(HTTPRequest(.get, server.url("endless-line")))
    var decoder = EventStreamDecoder()
    await #expect(throws: EventStreamError.lineTooLong(limit: 64 << 10)) {
      for try await chunk in stream.body { _ = try decoder.decode(chunk) }
    }
  }

  @Test("Ends with the server") func endsWithTheServer() async throws {
    let stream = try await http.stream(HTTPRequest(.get, server.url("trailers")))
    var received: [UInt8] = []
    for try await chunk in stream.body { received += chunk }
    #expect(received == Array("ok".utf8))
  }

  @Test("Releasing the stream ends the transfer") func releasingTheStreamEndsTheTransfer() async throws {
    var stream: HTTPResponseStream? = try await http.stream(HTTPRequest(.get, server.url("events")))
    #expect(stream?.status == 200)
    stream = nil
    _ = try await server.ask("await/gone")
  }

  @Test("Outlives its variable") func outlivesItsVariable() async throws {
    func open() async throws -> HTTPResponseStream {
      try await CurlHTTPTransport(trust: server.trust).stream(HTTPRequest(.get, server.url("trailers")))
    }
    var received: [UInt8] = []
    for try await chunk in try await open().body { received += chunk }
    #expect(received == Array("ok".utf8))
  }
}

@Suite("Canceling", .timeLimit(.minutes(5)))
struct CancelingTests {
  let server: HostileServer
  let http: CurlHTTPTransport

  init() throws {
    server = try HostileServer()
    http = CurlHTTPTransport(trust: server.trust)
  }

  @Test("Aborts a request") func abortsARequest() async throws {
    let request = HTTPRequest(.get, server.url("never"))
    let task = Task { [http] in try await http.send(request) }
    _ = try await server.ask("await/arrived")
    task.cancel()
    await #expect(throws: HTTPTransportError.canceled) { try await task.finished() }
    _ = try await server.ask("await/gone")
  }

  @Test("Aborts a stream that waits") func abortsAStreamThatWaits() async throws {
    let stream = try await http.stream(HTTPRequest(.get, server.url("events")))
    let task = Task { for try await _ in stream.body {} }
    task.cancel()
    // The result depends on whether the task was already waiting: `AsyncThrowingStream` then ends with an error.
    do { try await task.finished() } catch { #expect(error as? HTTPTransportError == .canceled) }
    _ = try await server.ask("await/gone")
  }

  @Test("Sends nothing for a task that is canceled already") func sendsNothingForATaskThatIsCanceledAlready()
    async throws
  {
    let request = HTTPRequest(.get, server.url("never"))
    let task = Task { [http] in
      withUnsafeCurrentTask { $0?.cancel() }
      return try await http.send(request)
    }
    await #expect(throws: HTTPTransportError.canceled) { try await task.finished() }
  }

  @Test("Closing ends everything") func closingEndsEverything() async throws {
    let stream = try await http.stream(HTTPRequest(.get, server.url("events")))
    let request = HTTPRequest(.get, server.url("never"))
    let task = Task { [http] in try await http.send(request) }
    _ = try await server.ask("await/arrived")
    http.close()
    http.close()
    await #expect(throws: HTTPTransportError.canceled) { try await task.finished() }
    await #expect(throws: HTTPTransportError.canceled) { for try await _ in stream.body {} }
    await #expect(throws: HTTPTransportError.canceled) { try await http.send(request) }
  }
}
