// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("Answering, with something in the way", .timeLimit(.minutes(5))) struct AnswerTroubleTests {
  private let fixture: PingAMFixture

  init() async throws {
    fixture = try PingAMFixture()
    try await fixture.enrolled(pin: pin("13579"))
  }

  // MARK: Network faults

  @Test("After a lost answer sends the same bytes, and they still count")
  func afterALostAnswerSendsTheSameBytesAndTheyStillCount() async throws {
    let push = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold)
    fixture.weather.withLock { $0 = [.answerIsLost, .status(503), .neverArrives] }
    for _ in 0..<3 { await #expect(throws: TokenServerError.self) { try await server.deliver(response) } }
    #expect(try await server.deliver(response).decision == .accept)
    #expect(Set(fixture.requests.withLock { $0.suffix(4).map(\.body) }).count == 1)
    #expect(fixture.am.verify(push) == .isTrue)
  }

  @Test("After a lost answer that AM used up meanwhile, the outcome is unknown")
  func afterALostAnswerThatAMUsedUpMeanwhileTheOutcomeIsUnknown() async throws {
    let push = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold)
    fixture.weather.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerError.self) { try await server.deliver(response) }
    #expect(fixture.am.verify(push) == .isTrue)
    await #expect { try await server.deliver(response) } throws: {
      if case TokenServerError.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try await server.pendingRequests().isEmpty)
  }

  /// AM's response to a second attempt says nothing about the first, nor does the response of a gateway.
  @Test(
    "After a fault, a refusal by AM makes the outcome unknown",
    arguments: [PingAMFixture.Weather.answerIsLost, .status(403)])
  func afterAFaultARefusalByAMMakesTheOutcomeUnknown(
    trouble: PingAMFixture.Weather
  ) async throws {
    _ = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold)
    fixture.weather.withLock { $0 = [trouble, .status(400)] }
    await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerError)?.effect == .retry }
    await #expect { try await server.deliver(response) } throws: {
      if case TokenServerError.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try fixture.vault.message(response.request.pending.transaction)?.state == .unknown)
  }

  @Test("Is tried again when storage could not be read") func isTriedAgainWhenStorageCouldNotBeRead() async throws {
    let push = try fixture.deliver()
    let messageStore = FlawedMessageStore(fixture.vault)
    let server = try fixture.server(messageStore: messageStore)
    let response = try await fixture.answer(server, .hold)
    fixture.weather.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerError.self) { try await server.deliver(response) }
    messageStore.isUnreadable.withLock { $0 = true }
    await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerError)?.effect == .retry }
    messageStore.isUnreadable.withLock { $0 = false }
    #expect(try await server.deliver(response).decision == .accept)
    #expect(fixture.am.verify(push) == .isTrue)
  }

  @Test("That AM refuses is over") func thatAMRefusesIsOver() async throws {
    _ = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold)
    fixture.weather.withLock { $0 = [.status(400)] }
    await #expect { try await server.deliver(response) } throws: { fault in
      if case TokenServerError.answerInvalid(let text) = fault { text.contains("no longer waits") } else { false }
    }
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test(
    "That something in between refuses is tried again",
    arguments: [500, 502, 503, 504, 429, 204, 302, 401, 403, 404, 501].map(PingAMFixture.Weather.status)
      + [.page(200), .page(400), .errorInSuccess])
  func thatSomethingInBetweenRefusesIsTriedAgain(trouble: PingAMFixture.Weather) async throws {
    let push = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold)
    fixture.weather.withLock { $0 = [.answerIsLost, trouble, trouble] }
    for _ in 0..<3 {
      await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerError)?.effect == .retry }
    }
    #expect(try await server.deliver(response).decision == .accept)
    #expect(Set(fixture.requests.withLock { $0.suffix(4).map(\.body) }).count == 1)
    #expect(fixture.am.verify(push) == .isTrue)
  }

  @Test("Too late is over") func tooLateIsOver() async throws {
    _ = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold)
    fixture.clock.advance(by: .seconds(121))
    await #expect { try await server.deliver(response) } throws: {
      if case TokenServerError.answerInvalid = $0 { true } else { false }
    }
  }

  @Test("Is kept by a service that does not know the account's new name yet")
  func isKeptByAServiceThatDoesNotKnowTheAccountsNewNameYet() async throws {
    let push = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold)
    fixture.weather.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerError.self) { try await server.deliver(response) }
    try fixture.vault.rename(AccountID("ann"), to: AccountID("anna"), AuditEntry(.renamed, wallClockMilliseconds: 0))
    await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerError)?.effect == .retry }
    #expect(try fixture.vault.message(response.request.pending.transaction)?.state == .pending)
    #expect(fixture.am.verify(push) == .isTrue)
  }

  // MARK: Crashes

  /// The state after a crash between the journal entry and AM's response. AM keeps the last answer, so no other answer
  /// may be sent.
  @Test("That a crash interrupted is never asked again", arguments: [true, false])
  func thatACrashInterruptedIsNeverAskedAgain(hadArrived: Bool) async throws {
    _ = try fixture.deliver()
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold, key: "k1")
    let pending = response.request.pending
    let intent = AnswerIntent(
      transaction: pending.transaction, server: pending.server, account: pending.account, idempotencyKey: "k1",
      decision: .accept)
    try fixture.vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 0))
    if hadArrived { _ = try await server.deliver(response) }
    let restarted = try fixture.server()
    #expect(try await restarted.pendingRequests().isEmpty)
    if hadArrived {
      let status = try await restarted.status(of: pending.transaction, account: pending.account)
      #expect(status.state == .authenticated && status.idempotencyKey == "k1")
    } else {
      await #expect { try await restarted.status(of: pending.transaction, account: pending.account) } throws: {
        if case TokenServerError.outcomeUnknown = $0 { true } else { false }
      }
    }
    try fixture.vault.resolveIntent(pending.transaction, AuditEntry(.settled, wallClockMilliseconds: 0))
    #expect(try await restarted.pendingRequests().isEmpty)
    await #expect(throws: TokenServerError.requestNotFound) { try await restarted.open(pending) }
  }

  /// The bytes are stored, and are sent until the request expires.
  @Test("That a crash interrupted is sent again", arguments: [true, false]) func thatACrashInterruptedIsSentAgain(
    hadArrived: Bool
  ) async throws {
    let push = try fixture.deliver()
    let intent = try await interrupted(hadArrived: hadArrived)
    let body = try #require(intent.body)
    let restarted = try fixture.server()
    fixture.weather.withLock { $0 = [.status(503)] }
    await #expect { try await restarted.resend(intent, body) } throws: { ($0 as? TokenServerError)?.effect == .retry }
    let status = try await restarted.resend(intent, body)
    #expect(status.state == .authenticated && status.idempotencyKey == "k1")
    #expect(Set(fixture.requests.withLock { $0.suffix(2).map(\.body) }) == [body])
    #expect(fixture.am.verify(push) == .isTrue)
    #expect(try fixture.vault.message(intent.transaction)?.state == .approved)
    // The request has ended, and the answer is not sent again.
    let sent = fixture.requests.withLock { $0.count }
    #expect(try await restarted.resend(intent, body).state == .authenticated)
    #expect(fixture.requests.withLock { $0.count } == sent)
  }

  @Test("That a crash interrupted is unknown when AM has ended it or it has expired", arguments: [true, false])
  func thatACrashInterruptedIsUnknownWhenAMHasEndedItOrItHasExpired(
    isInTime: Bool
  ) async throws {
    let push = try fixture.deliver()
    let intent = try await interrupted(hadArrived: true)
    let body = try #require(intent.body)
    #expect(fixture.am.verify(push) == .isTrue)
    if !isInTime { fixture.clock.advance(by: .seconds(121)) }
    let restarted = try fixture.server()
    let sent = fixture.requests.withLock { $0.count }
    await #expect { try await restarted.resend(intent, body) } throws: {
      if case TokenServerError.outcomeUnknown = $0 { true } else { false }
    }
    #expect(fixture.requests.withLock { $0.count } == (isInTime ? sent + 1 : sent))
    #expect(try fixture.vault.message(intent.transaction)?.state == .unknown)
  }

  /// The stored state after a crash directly after the journal entry, or directly after AM's response.
  private func interrupted(hadArrived: Bool) async throws -> AnswerIntent {
    let server = try fixture.server()
    let response = try await fixture.answer(server, .hold, key: "k1")
    #expect(response.isResentAfterRestart)
    let pending = response.request.pending
    let intent = AnswerIntent(
      transaction: pending.transaction, server: pending.server, account: pending.account, idempotencyKey: "k1",
      decision: .accept, body: response.body)
    try fixture.vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 0))
    if hadArrived {
      fixture.weather.withLock { $0 = [.answerIsLost] }
      await #expect(throws: TokenServerError.self) { try await server.deliver(response) }
    }
    #expect(try fixture.vault.unresolvedIntents() == [intent])
    return intent
  }
}

/// A message store that cannot be read for some time.
private final class FlawedMessageStore: PushMessageStore {
  let isUnreadable = Mutex(false)
  private let vault: Vault

  init(_ vault: Vault) { self.vault = vault }

  func store(_ message: DeliveredMessage, whenReadable: () -> Void) throws(StateStoreError) -> Bool {
    try vault.store(message, whenReadable: whenReadable)
  }
  func message(_ transaction: TransactionID) throws(StateStoreError) -> DeliveredMessage? {
    if isUnreadable.withLock({ $0 }) { throw .io(call: "read", reason: "input/output error") }
    return try vault.message(transaction)
  }
  func pendingMessages() throws(StateStoreError) -> [DeliveredMessage] { try vault.pendingMessages() }
  func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?) {
    vault.end(transaction, as: state, answerKey: answerKey)
  }
}
