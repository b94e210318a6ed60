import Courier
import CurlCourier
import Foundation
import Testing

/// What a courier costs the process it lives in, measured in processes of their own where nobody else runs.
@Suite("Cost")
struct ProcessTests {
  let server: HostileServer

  init() throws { server = try HostileServer() }

  @Test func takesLittleMemoryWhateverTheServerSends() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      let courier = CurlCourier(trust: server.trust)
      let before = try status("self", "VmHWM")
      for path in ["big", "big-chunks", "tiny-chunks", "endless-line", "endless-head", "endless-head-line"] {
        _ = try? await courier.send(HTTPRequest(.get, server.url(path)))
      }
      let firehose = try await courier.stream(HTTPRequest(.get, server.url("firehose")))
      _ = try await server.ask("await/stalled")
      #expect(firehose.status == 200)
      #expect(try status("self", "VmHWM") - before < 32 << 10, "kB")
    }
  }

  @Test func sleepsWhileAStreamIsSilent() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      let courier = CurlCourier(trust: server.trust)
      let stream = try await courier.stream(HTTPRequest(.get, server.url("events", host: "127.0.0.1")))
      let thread = try #require(threads().first)
      let other = CurlCourier(trust: server.trust)
      // Long enough for the last of the events to arrive.
      _ = try? await other.send(HTTPRequest(.get, server.url("never"), deadline: .milliseconds(300)))
      let before = try status("self/task/\(thread)", "voluntary_ctxt_switches")
      _ = try? await other.send(HTTPRequest(.get, server.url("never"), deadline: .milliseconds(1500)))
      #expect(try status("self/task/\(thread)", "voluntary_ctxt_switches") == before)
      #expect(stream.status == 200)
    }
  }

  @Test(.timeLimit(.minutes(1))) func endsItsThread() async {
    await #expect(processExitsWith: .success) { [server = server as HostileServer] in
      // An address, not a name: libcurl resolves names in threads of its own.
      let request = HTTPRequest(.get, server.url("status/204", host: "127.0.0.1"))
      let closed = CurlCourier(trust: server.trust)
      #expect(threads().isEmpty)
      _ = try await closed.send(request)
      #expect(threads().count == 1)
      closed.close()
      // The kernel may list a thread for a moment after it was waited for.
      while !threads().isEmpty { await Task.yield() }
      var dropped: CurlCourier? = CurlCourier(trust: server.trust)
      _ = try await dropped?.send(request)
      #expect(threads().count == 1)
      dropped = nil
      while !threads().isEmpty { await Task.yield() }
    }
  }

  /// The port in the address is nobody's, so the answer can only have come through the proxy.
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

/// A number in `/proc/…/status`; memory is in kB.
private func status(_ process: String, _ field: String) throws -> Int {
  let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
  let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(field + ":") })
  return try #require(Int(line.dropFirst(field.count + 1).split(whereSeparator: \.isWhitespace)[0]))
}

/// The couriers' threads in this process.
private func threads() -> [String] {
  let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
  return all.filter { thread in
    let name = try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8)
    return name == "courier\n"
  }
}
