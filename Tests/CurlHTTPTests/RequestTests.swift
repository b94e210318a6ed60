// SPDX-License-Identifier: Apache-2.0
import CurlHTTP
import HTTP
import Testing

/// Requests to a server that follows the protocol.
@Suite("Requests", .timeLimit(.minutes(5)))
struct RequestTests {
  let server: HostileServer
  let http: CurlHTTPTransport

  init() throws {
    server = try HostileServer()
    http = CurlHTTPTransport(trust: server.trust)
  }

  @Test(
    "Sends what it is given and nothing else",
    arguments: [
      (HTTPRequest.Method.get, ""), (.post, "some body"), (.post, ""), (.put, "some body"), (.put, ""), (.delete, ""),
      (.delete, "some body"),
    ])
  func sendsWhatItIsGivenAndNothingElse(method: HTTPRequest.Method, body: String) async throws {
    let response = try await http.send(
      HTTPRequest(method, server.url("echo"), headers: ["X-One": "1", "X-None": ""], body: Array(body.utf8)))
    #expect(response.status == 200)
    let lines = String(decoding: response.body, as: UTF8.self).split(
      separator: "\r\n", omittingEmptySubsequences: false)
    #expect(lines.first == "\(method.rawValue) /echo HTTP/1.1")
    #expect(lines.last.map(String.init) == body)
    var expected: Set = ["host: localhost:\(server.port)", "accept: */*", "x-one: 1", "x-none:"]
    if !body.isEmpty || method == .post || method == .put { expected.insert("content-length: \(body.utf8.count)") }
    #expect(Set(lines.dropFirst().dropLast(2).map { $0.lowercased() }) == expected)
  }

  @Test("Sends a large body without asking first") func sendsALargeBodyWithoutAskingFirst() async throws {
    let body = [UInt8](repeating: 0x78, count: 3 << 20)
    let response = try await http.send(
      HTTPRequest(.post, server.url("echo"), body: body, maximumBodyBytes: 4 << 20))
    #expect(response.body.suffix(body.count) == body[...])
  }

  @Test("Reads header fields") func readsHeaderFields() async throws {
    let headers = try await http.send(HTTPRequest(.get, server.url("echo"))).headers
    #expect(headers["x-twice"] == "last")
    #expect(headers["X-Empty"] == "")
    #expect(headers["X-Padded"] == "padded")
    #expect(headers["X-Missing"] == nil)
  }

  @Test("Hands every status over", arguments: [200, 204, 304, 400, 401, 404, 500, 599])
  func handsEveryStatusOver(status: Int) async throws {
    #expect(try await http.send(HTTPRequest(.get, server.url("status/\(status)"))).status == status)
  }

  @Test("Reads past interim answers and trailers") func readsPastInterimAnswersAndTrailers() async throws {
    let late = try await http.send(HTTPRequest(.get, server.url("interim")))
    #expect(late.status == 200)
    #expect(late.headers["X-Interim"] == nil)
    #expect(late.body == Array("after three hints".utf8))
    let trailed = try await http.send(HTTPRequest(.get, server.url("trailers")))
    #expect(trailed.headers["X-Trailer"] == nil)
    #expect(trailed.body == Array("ok".utf8))
  }

  @Test("Uses one connection for a thousand requests") func usesOneConnectionForAThousandRequests() async throws {
    for _ in 1..<1000 { _ = try await http.send(HTTPRequest(.get, server.url("status/204"))) }
    let connections = try await http.send(HTTPRequest(.get, server.url("connections")))
    #expect(connections.body == Array("1".utf8))
  }

  @Test("A connection that was idle for longer than the request allows is not used") func idleLimit() async throws {
    func count(_ limit: Duration) async throws -> [UInt8] {
      var request = HTTPRequest(.get, server.url("connections"))
      request.idleLimit = limit
      return try await http.send(request).body
    }
    #expect(try await count(.zero) == Array("1".utf8))
    // libcurl compares whole seconds.
    try await Task.sleep(for: .milliseconds(2100))
    #expect(try await count(.seconds(60)) == Array("1".utf8))
    try await Task.sleep(for: .milliseconds(2100))
    #expect(try await count(.seconds(1)) == Array("2".utf8))
    #expect(try await count(.zero) == Array("3".utf8))
  }

  @Test(
    "Over a kept connection that ends before the response, only a GET is sent again",
    arguments: HTTPRequest.Method.allCases)
  func lostConnection(method: HTTPRequest.Method) async throws {
    _ = try await http.send(HTTPRequest(.get, server.url("status/204")))
    let request = HTTPRequest(method, server.url("lost"), body: method == .get ? [] : Array("some body".utf8))
    if method == .get {
      #expect(try await http.send(request).body == Array("ok".utf8))
    } else {
      await #expect(throws: HTTPTransportError.unreachable("the connection was lost before the response")) {
        try await http.send(request)
      }
    }
    #expect(try await server.ask("count/lost") == (method == .get ? "2" : "1"))
    #expect(try await http.send(HTTPRequest(.post, server.url("echo"))).status == 200)
  }

  @Test("A connection that the server has closed is not used") func closedConnection() async throws {
    #expect(try await http.send(HTTPRequest(.get, server.url("last"))).status == 200)
    _ = try await server.ask("await/closed")
    #expect(try await http.send(HTTPRequest(.post, server.url("echo"), body: Array("some body".utf8))).status == 200)
  }

  @Test("Sends many at once") func sendsManyAtOnce() async throws {
    let answers = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for number in 0..<20 {
        group.addTask { try await http.send(HTTPRequest(.get, server.url("echo/\(number)"))).body }
      }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(answers.count == 20)
  }

  @Test("Accepts a body of exactly the limit") func acceptsABodyOfExactlyTheLimit() async throws {
    let request = HTTPRequest(.get, server.url("interim"), maximumBodyBytes: 17)
    #expect(try await http.send(request).body.count == 17)
    var tighter = request
    tighter.maximumBodyBytes = 16
    await #expect(throws: HTTPTransportError.tooLarge(limit: 16)) { try await http.send(tighter) }
  }

  static let unsendable: [(url: String, headers: HTTPHeaders)] = [
    ("http://localhost/", [:]), ("file:///etc/passwd", [:]), ("localhost", [:]), ("https://", [:]),
    ("https://user:password@localhost/", [:]), ("https://localhost/", ["X": "1\r\nY: 2"]),
    ("https://localhost/", ["X": "1\n"]), ("https://localhost/", ["X": "\0"]), ("https://localhost/", ["X: 1\nY": "2"]),
    ("https://localhost/", ["": "1"]), ("https://localhost/", ["X Y": "1"]),
  ]

  @Test("Refuses to send", arguments: unsendable)
  func refusesToSend(url: String, headers: HTTPHeaders) async throws {
    let failure = await #expect(throws: HTTPTransportError.self) {
      try await http.send(HTTPRequest(.get, url, headers: headers))
    }
    guard case .unsendable = failure else {
      Issue.record("\(url) with \(headers.fields) failed with \(String(describing: failure))")
      return
    }
  }

  @Test("Sends nothing to an origin that the trust does not name") func otherOrigin() async throws {
    let limited = CurlHTTPTransport(trust: server.trust.limited(to: ["https://other.example"]))
    let failure = await #expect(throws: HTTPTransportError.self) {
      try await limited.send(HTTPRequest(.get, server.url("echo")))
    }
    guard case .unsendable = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
  }
}
