// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import JSONValues
import MobileAuth
import Testing

@testable import PrivacyIDEAAdapter

@Suite("On the wire", .timeLimit(.minutes(5))) struct WireTests {
  @Test(
    "Time stamps are UTC",
    arguments: [
      (Int64(0), "1970-01-01T00:00:00.000Z"), (951_782_400_123, "2000-02-29T00:00:00.123Z"),
      (1_795_253_339_009, "2026-11-21T09:28:59.009Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (1_767_225_600_000, "2026-01-01T00:00:00.000Z"),
    ])
  func timeStampsAreUTC(milliseconds: Int64, text: String) { #expect(timeStamp(milliseconds) == text) }

  @Test("Time is the server's after its first response, and unknown before on a board with an unset clock")
  func timeIsTheServersAfterItsFirstResponseAndUnknownBeforeOnABoardWithAnUnsetClock() {
    let manualClock = ManualClock(wallClockMilliseconds: 0)
    let clock = ResponseClock(in: .test(manualClock))
    #expect(clock.now == nil)
    let response = HTTPResponse(status: 400, headers: ["Date": "Sat, 21 Nov 2026 09:28:59 GMT"])
    #expect(clock.hear(response, nil, comparedWith: 1_795_253_339_500 - 90_000) == .seconds(90))
    manualClock.advance(by: .seconds(61))
    #expect(clock.now == 1_795_253_400_500)
    #expect(clock.hear(HTTPResponse(status: 502, headers: ["Date": "yesterday"]), nil, comparedWith: 0) == nil)
    #expect(clock.now == 1_795_253_400_500)
    #expect(ResponseClock(in: .test(ManualClock(wallClockMilliseconds: 1_795_253_339_009))).now == 1_795_253_339_009)
  }

  @Test("The time in a body is preferred to Date, if it is one")
  func timeOfTheBody() {
    let clock = ResponseClock(in: .test(ManualClock(wallClockMilliseconds: 0)))
    let response = HTTPResponse(status: 400, headers: ["Date": "Sat, 21 Nov 2026 09:28:59 GMT"])
    let unusable: [JSONValue] = [
      .fraction(1.5), .fraction(1e300), .fraction(-1e300), .integer(.max), .integer(.min), .integer(253_402_300_800),
      .text("1795253000"), .list([]), .null,
    ]
    for time in unusable {
      clock.hear(response, .object(["time": time]))
      #expect(clock.now == 1_795_253_339_500, "\(time)")
    }
    #expect(
      clock.hear(response, .object(["time": .fraction(1_795_253_000.25)]), comparedWith: 1_795_253_001_250)
        == .seconds(1))
    #expect(clock.now == 1_795_253_000_250)
    // That of a proxy, whose clock is another one.
    #expect(clock.hear(response, nil, comparedWith: 0) == nil)
    #expect(clock.now == 1_795_253_000_250)
    clock.hear(response, .object(["time": .integer(1_795_253_002)]))
    #expect(clock.now == 1_795_253_002_000)
  }

  private static func error(_ status: Int, _ code: Int, _ message: String = "ERR") -> HTTPResponse {
    let error = #"{"code": \#(code), "message": "\#(message)"}"#
    let body = #"{"detail": null, "result": {"status": false, "error": \#(error)}, "time": 1.5}"#
    return HTTPResponse(status: status, body: Array(body.utf8))
  }

  /// A proxy's response in place of the server's.
  private static func page(_ status: Int) -> HTTPResponse {
    HTTPResponse(status: status, body: Array("<html><h1>\(status)</h1></html>".utf8))
  }

  @Test(
    "What a poll's error means",
    arguments: [
      (error(400, 10), Duration?.some(.seconds(1)), PollError.notKnown),
      (error(400, 10), .seconds(90), .clock(.seconds(90))),
      // Without the server's time it could have been the time stamp.
      (error(400, 10), nil, .clock(nil)), (error(400, -311), nil, .clock(nil)),
      (error(400, 10, "ERR10: Timestamp 2026-11-21 not in valid range."), .zero, .clock(nil)),
      (error(400, -311), .seconds(90), .clock(.seconds(90))),
      (error(400, -311), .zero, .notKnown), (error(403, 303), .zero, .forbidden("ERR")),
      (error(403, -311), .zero, .forbidden("ERR")), (error(400, 905), .zero, .misplaced("ERR (905)")),
      (error(404, 601), .zero, .misplaced("ERR (601)")), (error(404, -311), .zero, .misplaced("ERR (-311)")),
      // A redirect is not followed.
      (
        HTTPResponse(status: 301, headers: ["Location": "https://elsewhere/"]), .zero,
        .offline(.unreachable("status 301 without a known error message"))
      ),
      (error(500, -500), .zero, .offline(.unreachable("status 500 without a known error message"))),
      (
        page(502), .zero,
        .offline(.unreachable("status 502 without a known error message"))
      ),
      (
        HTTPResponse(status: 200, body: Array("<html>welcome".utf8)), .zero,
        .offline(.unreachable("status 200 without a known error message"))
      ),
      (
        page(405), .zero,
        .offline(.unreachable("status 405 without a known error message"))
      ),
      (
        HTTPResponse(status: 429, headers: ["Retry-After": "7"]), .zero, .offline(.rateLimited(retryAfter: .seconds(7)))
      ),
      (HTTPResponse(status: 429, headers: ["Retry-After": "-7"]), .zero, .offline(.rateLimited(retryAfter: nil))),
      // A proxy's JSON is not a result, nor is its HTML.
      (
        HTTPResponse(status: 400, body: Array(#"{"error": {"code": 10}}"#.utf8)), .zero,
        .offline(.unreachable("status 400 without a known error message"))
      ),
    ])
  func whatAPollsErrorMeans(response: HTTPResponse, drift: Duration?, fault: PollError) {
    #expect(PollError(response, drift: drift) == fault)
  }

  @Test(
    "What an answer's error means",
    arguments: [
      (error(404, 601), TokenServerError.requestNotFound), (error(404, -311), .requestNotFound),
      (error(400, 905), .answerInvalid("ERR (905)")), (error(403, 303), .refused("ERR")),
      (error(400, -311), .answerInvalid("ERR (-311)")), (error(403, -311), .refused("ERR")),
      (error(500, -500), .unreachable("status 500 without a known error message")),
      (page(404), .unreachable("status 404 without a known error message")),
      (page(405), .unreachable("status 405 without a known error message")),
      (page(429), .rateLimited(retryAfter: nil)),
      (page(503), .unreachable("status 503 without a known error message")),
    ])
  func whatAnAnswersErrorMeans(response: HTTPResponse, fault: TokenServerError) {
    #expect(TokenServerError(answering: response) == fault)
  }

  @Test(
    "What an enrollment's error means",
    arguments: [
      (error(400, 905), 10000), (error(400, -311), 10000), (error(404, 601), 9016), (error(404, -311), 9016),
      (error(403, 303), 9017), (error(403, -311), 9017), (error(500, -500), 9001), (HTTPResponse(status: 503), 9001),
      // A 404 from a proxy does not mean that the server does not know the token.
      (page(404), 9001), (page(400), 9001), (page(301), 9001),
    ])
  func whatAnEnrolmentsErrorMeans(response: HTTPResponse, number: Int) {
    #expect(TokenServerError(enrolling: response).number == number)
  }

  @Test(
    "Canonical JSON",
    arguments: [
      (#"{"b":1,"a":[true,false,null]}"#, #"{"a":[true,false,null],"b":1}"#),
      (
        #"{"é":"\u00fc\/\u0001\u001f\n\"","z":-9007199254740993}"#, #"{"z":-9007199254740993,"é":"ü/\u0001\u001f\n\""}"#
      ),
      // U+FB33 sorts after a surrogate pair by UTF-16, and before it by code point.
      ("{\"\u{FB33}\":1,\"\u{1F600}\":2}", "{\"\u{1F600}\":2,\"\u{FB33}\":1}"), ("1.5", "1.5"),
    ])
  func canonicalJSON(text: String, canonical: String) throws {
    #expect(try #require(JSONValue(parsing: Array(text.utf8))).canonical == canonical)
  }

  @Test("What is not JSON is nothing", arguments: ["", "{", "{}x", #"{"a":}"#, "nul", "\u{FEFF}"])
  func whatIsNotJSONIsNothing(text: String) { #expect(JSONValue(parsing: Array(text.utf8)) == nil) }
}
