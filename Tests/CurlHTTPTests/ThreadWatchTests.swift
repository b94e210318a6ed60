// SPDX-License-Identifier: Apache-2.0
import HTTP
import Testing

@testable import CurlHTTP

/// What a watchdog finds out about the thread of an HTTP client.
@Suite("Watching the thread of the HTTP client", .timeLimit(.minutes(1))) struct ThreadWatchTests {
  @Test("Commands that are not carried out show at the second look") func hangs() {
    let queue = CommandQueue(trust: ServerTrust())
    #expect(queue.hasReacted())
    #expect(!queue.hasReacted())
    for case .note(let number) in queue.takeAll() { queue.made(note: number) }
    #expect(queue.hasReacted())
  }

  @Test("A thread that has not started, runs or has ended is no hang") func works() async throws {
    let transport = CurlHTTPTransport(trust: ServerTrust())
    for _ in 1...2 { #expect(transport.hasReacted()) }
    // Starts the thread.
    await #expect(throws: HTTPTransportError.self) {
      _ = try await transport.send(HTTPRequest(.get, "https://127.0.0.1:1/"))
    }
    _ = transport.hasReacted()
    // The thread carries out its commands in their order.
    await #expect(throws: HTTPTransportError.self) {
      _ = try await transport.send(HTTPRequest(.get, "https://127.0.0.1:1/"))
    }
    #expect(transport.hasReacted())
    transport.close()
    for _ in 1...2 { #expect(transport.hasReacted()) }
  }
}
