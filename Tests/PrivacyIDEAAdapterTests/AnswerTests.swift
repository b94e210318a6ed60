// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Secrets
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

@Suite(.timeLimit(.minutes(5))) struct `An answer` {
  @Test(arguments: [
    (Gesture.Kind.hold, "PIPU0"), (.doublePress, "PIPU0|decline|cancelled"),
    (.veryLongHold, "PIPU0|decline|unknown_trigger"), (.cancelKeys, "PIPU0|decline|cancelled"),
  ])
  func `Is the user's decision, with the reason`(gesture: Gesture.Kind, text: String) async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0")
    let verdict = try await world.answer(world.open(), gesture)
    #expect(world.server.answers(to: nonce) == ["\(nonce)|\(text)"])
    #expect(verdict.receipt == nonce)
    #expect(try await world.token.pendingRequests().isEmpty)
  }

  @Test func `Has no reason where none is taken`() async throws {
    let world = try ServerWorld(.eduMFA)
    let nonce = world.server.challenge("PIPU0")
    _ = try await world.answer(world.open(), .veryLongHold)
    #expect(world.server.answers(to: nonce) == ["\(nonce)|PIPU0|decline"])
  }

  @Test(arguments: ["M", "a|b", "Größe", "5%41"])
  func `Names the option exactly as it came`(right: String) async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0", presence: "\(right),other", right: right)
    let request = try await world.open()
    _ = try await world.answer(request, .enter, choice: right)
    #expect(world.server.answers(to: nonce) == ["\(nonce)|PIPU0|\(right)"])
  }

  @Test func `With two wrong choices is a denial`() async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0", presence: "17,42,93", right: "42")
    await #expect(throws: TokenServerFault.choiceIncorrect(FailureCounts(max: 2, previous: 1))) {
      try await world.answer(world.open(), .enter, choice: "17")
    }
    let again = try await world.open()
    guard case .choice(let challenge) = again.contents.challenge else {
      Issue.record("no choice")
      return
    }
    #expect(challenge.counts.remaining == 1 && challenge.digitCount == 2)
    await #expect(throws: TokenServerFault.answerInvalid("2 wrong choices; the request was denied")) {
      try await world.answer(again, .enter, choice: "93")
    }
    #expect(world.server.answers(to: nonce).last == "\(nonce)|PIPU0|decline")
    world.timekeeper.advance(by: .seconds(2))
    #expect(try await world.token.pendingRequests().isEmpty)
  }

  @Test func `May return a code for the portal`() async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0", code: "07")
    let verdict = try await world.answer(world.open(), .hold)
    #expect(verdict.code == PortalCode(digits: "07", message: "Enter the code"))
  }

  @Test func `That comes too late is no success`() async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0")
    let request = try await world.open()
    world.server.end(nonce)
    await #expect(throws: TokenServerFault.requestNotFound) { try await world.answer(request, .hold) }
  }

  @Test func `Whose connection broke before it arrived is simply sent again`() async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0")
    let request = try await world.open()
    world.weather.forecast.withLock { $0 = [.neverArrives] }
    await #expect(throws: TokenServerFault.self) { try await world.answer(request, .hold) }
    #expect(try await world.answer(request, .hold).decision == .accept)
  }

  /// The challenge is listed again after it has ended: the server's response counts, and it is not a success.
  @Test func `To a challenge that is replayed later is no success`() async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0")
    let request = try await world.open()
    world.server.end(nonce)
    world.timekeeper.advance(by: .seconds(2))
    #expect(try await world.token.pendingRequests().isEmpty)
    await #expect(throws: TokenServerFault.requestNotFound) { try await world.token.open(request.pending) }
    world.server.challenge("PIPU0", ["nonce": nonce])
    let again = try await world.open()
    world.server.end(nonce)
    await #expect(throws: TokenServerFault.requestNotFound) { try await world.answer(again, .hold) }
  }

  @Test(arguments: [
    HTTPResponse(status: 200, body: Array("<html>welcome".utf8)), HTTPResponse(status: 200, body: Array("true".utf8)),
    HTTPResponse(status: 200, body: Array(#"{"result":{"status":true,"value":"true"}}"#.utf8)),
    HTTPResponse(status: 200, body: Array(#"{"result":{"status":false,"value":true}}"#.utf8)),
    HTTPResponse(status: 302, headers: ["Location": "/"]), HTTPResponse(status: 404, body: Array("<html>".utf8)),
    HTTPResponse(status: 502),
  ])
  func `Has no verdict but the server's own, and is sent until there is one`(page: HTTPResponse) async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0")
    let request = try await world.open()
    world.server.state.withLock { $0.failures = [page] }
    let unexplained = TokenServerFault.unreachable("status \(page.status) without a known error message")
    await #expect(throws: unexplained) { try await world.answer(request, .hold) }
    #expect(try await world.answer(request, .hold).decision == .accept)
    #expect(world.server.answers(to: nonce) == ["\(nonce)|PIPU0"])
  }

  /// The server refuses a repeated answer, whichever token answered first.
  @Test func `Whose own answer was lost is unknown, not denied`() async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0")
    let request = try await world.open()
    world.weather.forecast.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerFault.self) { try await world.answer(request, .hold) }
    let unknown = TokenServerFault.outcomeUnknown(
      "the connection was lost, and the token server cannot report whether the answer arrived")
    await #expect(throws: unknown) { try await world.answer(request, .hold) }
  }

  /// eduMFA would still accept an approval after the denial.
  @Test func `That declined is final`() async throws {
    let world = try ServerWorld(.eduMFA)
    let nonce = world.server.challenge("PIPU0")
    let request = try await world.open()
    _ = try await world.answer(request, .doublePress)
    world.server.state.withLock { $0.challenges[0].isOpen = true }
    world.timekeeper.advance(by: .seconds(2))
    #expect(try await world.token.pendingRequests().isEmpty)
    await #expect(throws: TokenServerFault.requestNotFound) { try await world.token.open(request.pending) }
    #expect(world.server.answers(to: nonce).count == 1)
  }

  @Test(arguments: [
    "http://pi.example/ttype/push", "https://pi.example/ttype/push?x", "https://me@pi.example/", "file:///etc/passwd",
  ])
  func `Never goes to an address that is not plain https`(url: String) async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0", ["url": url])
    await #expect(throws: TokenServerFault.notHandleable("its answer would not go to an https address")) {
      try await world.open()
    }
  }

  @Test func `To another host is named as such`() async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0", ["url": "https://other.example/ttype/push", "title": "VPN"])
    #expect(try await world.open().contents.type == "push \"VPN\", to be answered at other.example")
  }

  @Test func `Is sent only after the right PIN, where one is required`() async throws {
    let judge = ScriptedJudge([.wrong(FailureCounts(max: 3, previous: 1)), .right])
    let world = try ServerWorld(wantsPIN: true, judge: judge)
    let nonce = world.server.challenge("PIPU0")
    let request = try await world.open()
    #expect(request.contents.challenge == .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    await #expect(throws: TokenServerFault.pinIncorrect(FailureCounts(max: 3, previous: 1))) {
      try await world.answer(request, .enter, pin: pin("00000"))
    }
    #expect(world.server.answers(to: nonce).isEmpty)
    _ = try await world.answer(request, .enter, pin: pin("13579"))
    #expect(world.server.answers(to: nonce) == ["\(nonce)|PIPU0"])
    #expect(judge.judged.withLock { $0 } == [pin("00000"), pin("13579")])
  }

  @Test func `Needs no PIN to deny, and wipes after the last wrong PIN`() async throws {
    let judge = ScriptedJudge([.wiped])
    let world = try ServerWorld(wantsPIN: true, judge: judge)
    let nonce = world.server.challenge("PIPU0")
    let request = try await world.open()
    await #expect(throws: TokenServerFault.pinsUsedUp) {
      try await world.answer(request, .enter, pin: pin("00000"))
    }
    _ = try await world.answer(request, .doublePress)
    #expect(world.server.answers(to: nonce) == ["\(nonce)|PIPU0|decline|cancelled"])
  }

  /// As on a board whose keypad was removed.
  @Test(arguments: [nil, "M,H"]) func `Can only be denied where a PIN is required and the board has no keypad`(
    presence: String?
  ) async throws {
    let world = try ServerWorld(wantsPIN: true)
    let nonce =
      if let presence { world.server.challenge("PIPU0", presence: presence, right: "H") } else {
        world.server.challenge("PIPU0")
      }
    let request = try await world.open()
    #expect(request.contents.challenge == .impossible)
    #expect(request.contents.type.contains("can only be denied: a PIN is required"))
    for gesture in [Gesture.Kind.hold, .enter] {
      let response = request.answered(
        by: Gesture(gesture, held: .seconds(1)), typing: pin("13579"), choosing: "H", after: .zero, idempotencyKey: "")
      #expect(response == nil)
    }
    _ = try await world.answer(request, .doublePress)
    #expect(world.server.answers(to: nonce) == ["\(nonce)|PIPU0|decline|cancelled"])
  }

  @Test func `Choice and PIN are both required`() async throws {
    let world = try ServerWorld(wantsPIN: true, judge: ScriptedJudge([.right]))
    let nonce = world.server.challenge("PIPU0", presence: "M,H", right: "H")
    let request = try await world.open()
    #expect(request.answered(by: Gesture(.enter, held: .zero), choosing: "H", after: .zero, idempotencyKey: "") == nil)
    _ = try await world.answer(request, .enter, pin: pin("13579"), choice: "H")
    #expect(world.server.answers(to: nonce) == ["\(nonce)|PIPU0|H"])
  }
}

private final class ScriptedJudge: PINJudge {
  let judged = Mutex<[PIN]>([])
  private let judgements: Mutex<[PINJudgement]>

  init(_ judgements: [PINJudgement]) { self.judgements = Mutex(judgements) }

  func counts(of account: AccountID) throws(CustodyFault) -> FailureCounts? { FailureCounts(max: 3, previous: 0) }

  func judge(_ pin: PIN, of account: AccountID) throws(CustodyFault) -> PINJudgement {
    judged.withLock { $0.append(pin) }
    return judgements.withLock { $0.removeFirst() }
  }
}
