// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import CurlHTTP
import Foundation
import HTTP
import ProgramHarness
import Testing

/// The threads, memory and wake-ups of the HTTP client, measured in separate processes without other activity.
@Suite("Cost", .timeLimit(.minutes(5)))
struct CostTests {
  let server: HostileServer

  init() throws { server = try HostileServer() }

  @Test("Takes little memory whatever the server sends") func takesLittleMemoryWhateverTheServerSends() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      let http = CurlHTTPTransport(trust: server.trust)
      let before = try ThisProcess.peakMemory()
      for path in ["big", "big-chunks", "tiny-chunks", "endless-line", "endless-head", "endless-head-line"] {
        _ = try? await http.send(HTTPRequest(.get, server.url(path)))
      }
      let firehose = try await http.stream(HTTPRequest(.get, server.url("firehose")))
      _ = try await server.ask("await/stalled")
      #expect(firehose.status == 200)
      #expect(try ThisProcess.peakMemory() - before < 32 << 10, "kB")
    }
  }

  @Test("Sleeps while a stream is silent") func sleepsWhileAStreamIsSilent() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      let http = CurlHTTPTransport(trust: server.trust)
      let stream = try await http.stream(HTTPRequest(.get, server.url("events", host: "127.0.0.1")))
      let thread = try #require(ThisProcess.threads(named: "http").first)
      let other = CurlHTTPTransport(trust: server.trust)
      #expect(
        try await ThisProcess.sleeps(thread) {
          _ = try? await other.send(HTTPRequest(.get, server.url("never"), deadline: .milliseconds(1500)))
        })
      #expect(stream.status == 200)
    }
  }

  @Test("Ends its thread") func endsItsThread() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      // An address instead of a name: libcurl resolves names in separate threads.
      let request = HTTPRequest(.get, server.url("status/204", host: "127.0.0.1"))
      let closed = CurlHTTPTransport(trust: server.trust)
      #expect(ThisProcess.threads(named: "http").isEmpty)
      _ = try await closed.send(request)
      #expect(ThisProcess.threads(named: "http").count == 1)
      closed.close()
      // The kernel may list a thread for a moment after it was joined.
      _ = try await eventually("the end of the thread") { ThisProcess.threads(named: "http").isEmpty ? true : nil }
      var dropped: CurlHTTPTransport? = CurlHTTPTransport(trust: server.trust)
      _ = try await dropped?.send(request)
      #expect(ThisProcess.threads(named: "http").count == 1)
      dropped = nil
      _ = try await eventually("the end of the thread") { ThisProcess.threads(named: "http").isEmpty ? true : nil }
    }
  }

  /// No server listens on the port in the address, so the response must have come through the proxy.
  @Test("Goes through the proxy of the environment") func goesThroughTheProxyOfTheEnvironment() async throws {
    let proxy = try server.startProxy()
    await #expect(processExitsWith: .success) { [server = server as HostileServer, proxy = proxy as Int] in
      for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] { unsetenv(name) }
      setenv("https_proxy", "http://127.0.0.1:\(proxy)", 1)
      let response = try await CurlHTTPTransport(trust: server.trust).send(
        HTTPRequest(.get, "https://localhost:1/interim"))
      #expect(response.body == Array("after three hints".utf8))
      #expect(response.headers["X-Proxy"] == nil)
      await #expect(throws: HTTPTransportError.self) {
        try await CurlHTTPTransport(trust: ServerTrust()).send(HTTPRequest(.get, "https://localhost:1/interim"))
      }
    }
  }
}
