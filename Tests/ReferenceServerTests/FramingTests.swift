// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc
import ReferenceProtocol
import ServerTestSupport
import Testing

/// The framing of HTTP/1.1 (RFC 9112), and the end of connections, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct FramingTests {
  private static let path = ServerMetadata.path
  /// Nothing ends a connection within the time for which a test waits for its end.
  private static let patient = "[limits]\nrequest_seconds = 3600\nidle_seconds = 3600\n"

  /// Sends text over TLS and reads until the server closes its side, or for `seconds`.
  private func exchange(
    _ server: TokenServerProcess, _ text: String, seconds: Int = 60
  ) throws -> (text: String, status: Int32) {
    let output = try run(
      "/usr/bin/env",
      [
        "timeout", "\(seconds)", "openssl", "s_client", "-quiet", "-connect", "127.0.0.1:\(server.port)",
      ],
      input: Array(text.utf8))
    return (output.text, output.status)
  }

  private static let heads: [(String, Int)] = [
    ("GET \(path) HTTP/1.1\r\nConnection: close\r\n", 400),
    ("GET \(path) HTTP/1.1\r\nHost: a\r\nHost: a\r\nConnection: close\r\n", 400),
    ("GET \(path) HTTP/1.1\r\nHost:\r\nConnection: close\r\n", 400),
    ("GET \(path) HTTP/1.1\r\nHost: a/b\r\nConnection: close\r\n", 400),
    ("GET \(path) HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\n", 200),
    ("GET \(path) HTTP/1.0\r\n", 200), ("GET \(path) HTTP/1.0\r\nHost: a\r\nHost: a\r\n", 400),
    ("POST /oauth/token HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400),
  ]

  @Test(
    "A request without exactly one Host field is refused; HTTP/1.0 needs none, and has no chunks",
    arguments: heads)
  func hosts(head: String, status: Int) throws {
    let server = try TokenServerProcess(configuration: Self.patient)
    let output = try exchange(server, head + "\r\n")
    let words = output.text.split(separator: " ")
    #expect(words.count > 1 && words[1] == "\(status)", "\(output.text)")
    // Not ended by the time limit: the server has closed the connection.
    #expect(output.status != 124)
  }

  @Test("The client of HTTP/1.0 gets no chunks, and one response") func oldClients() throws {
    let server = try TokenServerProcess(configuration: Self.patient)
    let text = "GET \(Self.path) HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    let output = try exchange(server, text + text)
    #expect(output.text.components(separatedBy: "200 OK").count == 2, "\(output.text)")
    #expect(output.text.lowercased().contains("connection: close") && !output.text.lowercased().contains("chunked"))
    #expect(output.status != 124)
  }

  @Test("Expect: 100-continue is answered before the body; a body that is too large is not asked for")
  func expectations()
    throws
  {
    let server = try TokenServerProcess(configuration: Self.patient)
    func head(_ length: Int) -> String {
      "POST /oauth/token HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        + "Expect: 100-continue\r\nConnection: close\r\nContent-Length: \(length)\r\n\r\n"
    }
    // The body does not follow, and the server waits for it.
    var waiting = try exchange(server, head(3), seconds: 3)
    // A busy machine may not connect within this time.
    for seconds in [12, 48] where waiting.text.isEmpty { waiting = try exchange(server, head(3), seconds: seconds) }
    #expect(waiting.text == "HTTP/1.1 100 Continue\r\n\r\n")
    let whole = try exchange(server, head(3) + "a=b")
    #expect(whole.text.contains("HTTP/1.1 400"), "\(whole.text)")
    let large = try exchange(server, head(300_000))
    #expect(large.text.hasPrefix("HTTP/1.1 413") && large.status != 124, "\(large.text)")
  }

  @Test("HEAD is answered like GET at the operations' address; another method at a known path gets 405 with Allow")
  func methods() throws {
    let server = try TokenServerProcess(configuration: "[operations]\nport = 0\n")
    let line = try #require(
      server.log.split(separator: "\n").first { $0.contains("health checks and metrics on port") })
    let operations = "http://127.0.0.1:\(line.split(separator: " ").last ?? "")"
    for path in ["/healthz", "/readyz", "/metrics"] {
      let head = try run("/usr/bin/curl", ["--silent", "--show-error", "--head", operations + path])
      #expect(head.text.hasPrefix("HTTP/1.1 200"), "\(head.text) \(head.errors)")
      let wrong = try server.curl("--request", "DELETE", operations + path)
      #expect(wrong.status == 405 && wrong.headers["allow"] == "GET, HEAD")
    }
    let token = try server.curl("--request", "PUT", server.url + "/oauth/token")
    #expect(token.status == 405 && token.headers["allow"] == "POST")
    let device = try server.curl("--request", "PUT", server.url + "/device/v1/requests/x")
    #expect(device.status == 405 && device.headers["allow"] == "GET")
    #expect(try device.decoded(Problem.self).status == 405)
    #expect(try server.curl("--request", "PUT", server.url + "/nowhere").status == 404)
  }

  @Test("A path has one spelling, so that a proxy's rule for it is not passed by") func spellings() throws {
    let server = try TokenServerProcess()
    func status(_ method: String, _ path: String) throws -> Int {
      try server.curl("--request", method, server.url + path).status
    }
    #expect(try status("POST", "/oauth/register") != 404)
    for path in ["//oauth/register", "/oauth//register", "/oauth/register/", "/oauth/register/?x"] {
      #expect(try status("POST", path) == 404, "\(path)")
      // Not 405, either.
      #expect(try status("PUT", path) == 404, "\(path)")
    }
    #expect(try status("GET", "/device/v1/pending") == 401)
    let device = try server.curl(server.url + "/device/v1/pending/")
    #expect(device.status == 404)
    #expect(try device.decoded(Problem.self).status == 404)
  }

  @Test("A response to HEAD has no body, and Connection: close ends the connection in any spelling")
  func headAndClose() throws {
    let server = try TokenServerProcess(configuration: Self.patient)
    for (path, status) in [("/nowhere", 404), (Self.path, 405)] {
      let text =
        "HEAD \(path) HTTP/1.1\r\nHost: h\r\n\r\nGET \(Self.path) HTTP/1.1\r\nHost: h\r\nConnection: TE, Close\r\n\r\n"
      let output = try exchange(server, text)
      let parts = output.text.components(separatedBy: "\r\n\r\n")
      #expect(
        parts.count == 3 && parts[0].hasPrefix("HTTP/1.1 \(status)") && parts[1].hasPrefix("HTTP/1.1 200"), "\(parts)")
      #expect(parts[0].lowercased().contains("content-length: ") && parts[1].lowercased().contains("connection: close"))
      #expect(output.status != 124)
    }
  }

  /// A client that has an open TLS connection and never answers a close_notify.
  private func silentClient(_ server: TokenServerProcess, _ text: String) throws -> RunningProgram {
    let program = try RunningProgram(
      "/usr/bin/env", ["openssl", "s_client", "-quiet", "-connect", "127.0.0.1:\(server.port)"],
      input: Array(text.utf8))
    usleep(700_000)
    // It has its connection, and reads nothing more.
    program.send(SIGSTOP)
    return program
  }

  @Test(
    "The server ends within 1.2 s, whatever connections there are",
    arguments: [
      "", "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n",
      "POST /oauth/token HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n",
    ])
  func ends(text: String) throws {
    // One of ten times is enough: on a busy machine each step may be late. Without the limit, the client was waited
    // for 5 s each time.
    let isInTime = try (1...10).contains { _ in
      let server = try TokenServerProcess()
      let client = try silentClient(server, text)
      let began = ContinuousClock.now
      #expect(server.stop() == 0)
      return withExtendedLifetime(client) { ContinuousClock.now - began < .seconds(3) }
    }
    #expect(isInTime)
  }
}
