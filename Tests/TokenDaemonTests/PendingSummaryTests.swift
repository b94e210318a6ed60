// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import JSONValues
import MobileAuth
import Testing

@testable import TokenDaemon

@Suite("The summary of a pending request", .timeLimit(.minutes(1))) struct PendingSummaryTests {
  private let clock = ManualClock(wallClockMilliseconds: 0)

  private func listed(_ summary: RequestSummary, _ message: String? = nil) throws -> PendingMobileAuthRequest {
    PendingMobileAuthRequest(
      transaction: try #require(TransactionID("00000000-0000-4000-8000-000000000001")), server: TokenServerID("s"),
      account: AccountID("a"), sentAtMilliseconds: 1, timeToLive: .seconds(60), message: message, summary: summary,
      deadline: clock.now + .seconds(60))
  }

  private func summary(_ summary: RequestSummary) throws -> PendingSummary {
    PendingSummary(try listed(summary), now: clock.now)
  }

  /// Fails if a later list, which is not signed, replaces a text that was compared with the signed one.
  @Test("Of the request on the panel it has the texts that were verified, whatever a later list says")
  func keepsVerifiedTexts() throws {
    let request = try listed(RequestSummary(type: "login"), "Log in?")
    let texts = VerifiedTexts(signedWith: .openPGP, type: "login", message: "m", pushMessage: "Log in?")
    let shown = try request.opened(
      VerifiedContents(
        transaction: request.transaction, account: request.account, type: "login", texts: texts,
        challenge: .confirmation, answerContext: []))
    var later = try listed(RequestSummary(type: "payment"), "Pay?")
    later.deadline = clock.now + .seconds(7)
    let summary = PendingSummary(later, shown, now: clock.now)
    #expect(summary.message == "Log in?" && summary.type == "login")
    #expect(summary.verified?.message == "m" && summary.expiresInSeconds == 7)
    #expect(summary.timeToLiveSeconds == 60 && summary.sentAtMilliseconds == 1)
    let other = PendingSummary(later, nil, now: clock.now)
    #expect(other.message == "Pay?" && other.verified == nil)
  }

  private func choices(_ options: [String]) throws -> [PendingSummary.Choice] {
    let counts = FailureCounts(max: 3, previous: 0)
    return try #require(
      try summary(RequestSummary(choices: ChoiceChallenge(options: options, counts: counts))).choices)
  }

  @Test("Names the key for each choice") func namesKeys() throws {
    let colors = try choices(["dark blue", "green"])
    #expect(colors.map(\.key) == ["1", "2"] && colors.map(\.option) == ["dark blue", "green"])
    #expect(colors.map(\.description) == ["1 dark blue", "2 green"])
    #expect(try choices(["17", "42"]).map(\.description) == ["17", "42"])
  }

  @Test("Contains no control characters of choices") func sanitizesChoices() throws {
    #expect(try choices(["a\u{1B}[31m", "b"]).map(\.option) == ["a[31m", "b"])
  }

  @Test("Contains JSON of the server as JSON, and other text as text") func embedsJSON() throws {
    let origin = #"{"remoteIp":"198.51.100.7"}"#
    let shown = try summary(RequestSummary(origin: origin, payload: "twelve {"))
    #expect(shown.context == .object(["remoteIp": .text("198.51.100.7")]))
    #expect(shown.payload == .text("twelve {"))
  }

  /// Fails if a server's nested JSON makes the whole answer deeper than a command accepts.
  @Test("Is readable for a command, however deep the server's JSON is", arguments: [1, 15, 16, 17, 30, 32, 33])
  func deepJSON(levels: Int) throws {
    let origin = String(repeating: "[", count: levels) + "7" + String(repeating: "]", count: levels)
    let shown = try summary(RequestSummary(origin: origin))
    #expect((shown.context == .text(origin)) == (levels > 16))
    let line = JSONMessage.encode(PendingResponse(requests: [shown], unreachable: []))
    guard case .answer(let read) = try ControlResponse<PendingResponse>(line: line) else {
      Issue.record("not an answer")
      return
    }
    #expect(read.requests.map(\.context) == [shown.context])
  }

  @Test("Has the server's name of its kind, and the numbers") func hasPushType() throws {
    let shown = try summary(RequestSummary(type: "push with a number", pushType: "challenge", numbers: [12, 34]))
    let line = String(decoding: JSONMessage.encode(shown), as: UTF8.self)
    #expect(line.contains(#""numbers":[12,34]"#) && line.contains(#""push_type":"challenge""#))
    #expect(shown.verified == nil)
  }

  @Test("Has no choices, context or payload without those of the request") func isEmpty() throws {
    let shown = try summary(RequestSummary(type: "login"))
    #expect(shown.type == "login" && shown.choices == nil && shown.context == nil && shown.payload == nil)
  }
}
