// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import NetworkDaemon
@testable import TokenDaemon

/// Requests that an attacker may send to the push listener.
@Suite(.timeLimit(.minutes(5))) struct PushPostTests {
  private static func request(
    _ line: String = "POST /push HTTP/1.1", host: String = "Host: board\r\n", length: String = "Content-Length: 2\r\n",
    _ more: String = "", body: String = "{}"
  ) -> String {
    line + "\r\n" + host + length + more + "\r\n" + body
  }

  private func status(of request: String, inPiecesOf size: Int = .max) -> PushPost.Status? {
    var post = PushPost()
    var rest = Array(request.utf8)[...]
    while !rest.isEmpty {
      if let status = post.take(rest.prefix(size)) { return status }
      rest = rest.dropFirst(size)
    }
    return nil
  }

  @Test("A post is taken however it is cut", arguments: [1, 2, 3, 7, 4096])
  func aPostIsTakenHoweverItIsCut(size: Int) {
    #expect(status(of: Self.request("POST /push HTTP/1.1", "User-Agent: x\r\n"), inPiecesOf: size) == .ok)
    #expect(status(of: Self.request(length: "content-length:0\r\n", body: ""), inPiecesOf: size) == .ok)
    #expect(status(of: Self.request(length: "Content-Length: 5\r\n", body: "ü€"), inPiecesOf: size) == .ok)
    #expect(status(of: Self.request(length: "Content-Length: 3\r\n"), inPiecesOf: size) == nil, "one is missing")
  }

  @Test(
    "Whatever else is refused",
    arguments: [
      (request("GET /push HTTP/1.1"), PushPost.Status.notAllowed), (request("post /push HTTP/1.1"), .notAllowed),
      (request("POST / HTTP/1.1"), .notFound), (request("POST /push?a HTTP/1.1"), .notFound),
      (request("POST /Push HTTP/1.1"), .notFound), (request("POST http://board/push HTTP/1.1"), .notFound),
      (request("POST /push HTTP/1.0"), .bad), (request("POST /push"), .bad), (request("POST  /push HTTP/1.1"), .bad),
      (request("PÖST /push HTTP/1.1"), .bad), (request("POST /push HTTP/1.1\nX: y"), .bad), (request(""), .bad),
      (request(host: ""), .bad), (request(host: "Host: a\r\nHost: b\r\n"), .bad), (request(host: "Host : a\r\n"), .bad),
      (request(host: "Host: größe\r\n"), .bad), (request(host: "Host: a\r\n folded\r\n"), .bad),
      (request(length: ""), .bad), (request(length: "Content-Length: 2\r\nContent-Length: 2\r\n"), .bad),
      (request(length: "Content-Length: -2\r\n"), .bad), (request(length: "Content-Length: +2\r\n"), .bad),
      (request(length: "Content-Length: 2 \r\n"), .bad), (request(length: "Content-Length: 2, 2\r\n"), .bad),
      (request(length: "Content-Length: 0x2\r\n"), .bad), (request(length: "Content-Length: ٢\r\n"), .bad),
      (request(length: "Content-Length: 99999999999999999999\r\n"), .bad),
      (request(length: "Content-Length:\r\n"), .bad),
      (request("POST /push HTTP/1.1", "Transfer-Encoding: chunked\r\n"), .bad),
      (request(length: "Content-Length: 16385\r\n"), .tooLarge),
      (request(length: "Content-Length: 999999999\r\n"), .tooLarge),
      (request("POST /push HTTP/1.1", "X: " + String(repeating: "x", count: 8192) + "\r\n"), .headTooLarge),
      (String(repeating: "x", count: 8193), .headTooLarge),
    ])
  func whateverElseIsRefused(request: String, answer: PushPost.Status) {
    #expect(status(of: request) == answer)
    #expect(status(of: request, inPiecesOf: 1) == answer)
  }

  @Test("A second request behind the first is not served") func aSecondRequestBehindTheFirstIsNotServed() {
    #expect(status(of: Self.request() + Self.request()) == .bad)
    #expect(status(of: Self.request(length: "Content-Length: 4\r\n", body: "ü€")) == .bad, "five bytes")
  }

  @Test("The largest body is taken") func theLargestBodyIsTaken() {
    let body = String(repeating: "x", count: 16 << 10)
    #expect(status(of: Self.request(length: "Content-Length: \(body.utf8.count)\r\n", body: body)) == .ok)
  }

  @Test("A slow sender is disconnected") func slowSenderIsDisconnected() {
    var (now, sent) = (Duration.zero, 0)
    let bytes = Array(Self.request().utf8)
    let status = PushPost.read(timeLeft: { .seconds(2) - now }) { _ in
      now += .milliseconds(100)
      sent += 1
      return [bytes[sent - 1]]
    }
    #expect(status == .tooSlow && sent == 20)
    #expect(PushPost.read(timeLeft: { .seconds(2) }, read: { _ in nil }) == .tooSlow)
    #expect(PushPost.read(timeLeft: { .seconds(2) }, read: { _ in [] }) == .bad, "gone before the end")
  }

  @Test("An answer says nothing but its number") func anAnswerSaysNothingButItsNumber() {
    #expect(
      PushPost.Status.notAllowed.response
        == "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
  }

  @Test("A flood wakes no more than a poll") func aFloodWakesNoMoreThanAPoll() {
    var bucket = TokenBucket(capacity: 5, interval: .seconds(3))
    let taken = (0..<600).count { bucket.take(at: .milliseconds($0 * 100)) }
    // A burst of five, then one in three for 60 s.
    #expect((24...25).contains(taken))
    let isRefilled = bucket.take(at: .seconds(3600))
    #expect(isRefilled)
  }

  @Test("An address is numbers", arguments: ["127.0.0.1:8765", "0.0.0.0:1", "[::1]:65535"])
  func anAddressIsNumbers(text: String) throws {
    #expect(try #require(ListenAddress(text)).description == text)
    #expect(
      try Configuration(parsing: "[push]\nlisten = \"\(text)\"", file: "f").push.listen == ListenAddress(text))
  }

  @Test(
    "Anything else is no address",
    arguments: [
      "", "8765", ":8765", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "localhost:8765", "::1:8765",
      "[127.0.0.1]:1", "[::1]", "127.0.0.1:+80", "127.0.0.1: 80",
    ])
  func anythingElseIsNoAddress(text: String) {
    #expect(ListenAddress(text) == nil)
    #expect {
      try Configuration(parsing: "[push]\nlisten = \"\(text)\"", file: "f")
    } throws: { "\($0)".contains("push.listen") }
  }

  @Test("Nothing is listened to unless asked") func nothingIsListenedToUnlessAsked() throws {
    #expect(try Configuration(parsing: "[push]", file: "f").push.listen == nil)
  }
}
