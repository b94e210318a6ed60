// SPDX-License-Identifier: Apache-2.0
import Courier
import CurlCourier
import Foundation
import ProgramHarness
import Testing

/// The threads, memory and wake-ups of the HTTP client, measured in separate processes without other activity.
@Suite("Cost", .timeLimit(.minutes(5)))
struct ProcessTests {
  let server: HostileServer

  init() throws { server = try HostileServer() }

  @Test func takesLittleMemoryWhateverTheServerSends() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      let courier = CurlCourier(trust: server.trust)
      let before = try ThisProcess.peakMemory()
      for path in ["big", "big-chunks", "tiny-chunks", "endless-line", "endless-head", "endless-head-line"] {
        _ = try? await courier.send(HTTPRequest(.get, server.url(path)))
      }
      let firehose = try await courier.stream(HTTPRequest(.get, server.url("firehose")))
      _ = try await server.ask("await/stalled")
      #expect(firehose.status == 200)
      #expect(try ThisProcess.peakMemory() - before < 32 << 10, "kB")
    }
  }

  @Test func sleepsWhileAStreamIsSilent() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      let courier = CurlCourier(trust: server.trust)
      let stream = try await courier.stream(HTTPRequest(.get, server.url("events", host: "127.0.0.1")))
      let thread = try #require(ThisProcess.threads(named: "courier").first)
      let other = CurlCourier(trust: server.trust)
      #expect(
        try await ThisProcess.sleeps(thread) {
          _ = try? await other.send(HTTPRequest(.get, server.url("never"), deadline: .milliseconds(1500)))
        })
      #expect(stream.status == 200)
    }
  }

  @Test(.timeLimit(.minutes(1))) func endsItsThread() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      // An address instead of a name: libcurl resolves names in separate threads.
      let request = HTTPRequest(.get, server.url("status/204", host: "127.0.0.1"))
      let closed = CurlCourier(trust: server.trust)
      #expect(ThisProcess.threads(named: "courier").isEmpty)
      _ = try await closed.send(request)
      #expect(ThisProcess.threads(named: "courier").count == 1)
      closed.close()
      // The kernel may list a thread for a moment after it was joined.
      _ = try await eventually("the end of the thread") { ThisProcess.threads(named: "courier").isEmpty ? true : nil }
      var dropped: CurlCourier? = CurlCourier(trust: server.trust)
      _ = try await dropped?.send(request)
      #expect(ThisProcess.threads(named: "courier").count == 1)
      dropped = nil
      _ = try await eventually("the end of the thread") { ThisProcess.threads(named: "courier").isEmpty ? true : nil }
    }
  }

  /// No server listens on the port in the address, so the response must have come through the proxy.
  @Test func goesThroughTheProxyOfTheEnvironment() async throws {
    let proxy = try server.startProxy()
    await #expect(processExitsWith: .success) { [server = server as HostileServer, proxy = proxy as Int] in
      for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] { unsetenv(name) }
      setenv("https_proxy", "http://127.0.0.1:\(proxy)", 1)
      let response = try await CurlCourier(trust: server.trust).send(HTTPRequest(.get, "https://localhost:1/interim"))
      #expect(response.body == Array("after three hints".utf8))
      #expect(response.headers["X-Proxy"] == nil)
      await #expect(throws: CourierError.self) {
        try await CurlCourier(trust: ServerTrust()).send(HTTPRequest(.get, "https://localhost:1/interim"))
      }
    }
  }
}
