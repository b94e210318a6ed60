// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import MobileAuth
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `Answering, with something in the way` {
  private let world: AMWorld

  init() async throws {
    world = try AMWorld()
    try await world.enrolled(pin: pin("13579"))
  }

  // MARK: Network faults

  @Test func `After a lost answer sends the same bytes, and they still count`() async throws {
    let push = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold)
    world.weather.withLock { $0 = [.answerIsLost, .status(503), .neverArrives] }
    for _ in 0..<3 { await #expect(throws: TokenServerFault.self) { try await server.deliver(response) } }
    #expect(try await server.deliver(response).decision == .accept)
    #expect(Set(world.requests.withLock { $0.suffix(4).map(\.body) }).count == 1)
    #expect(world.am.verify(push) == .isTrue)
  }

  @Test func `After a lost answer that AM used up meanwhile, the outcome is unknown`() async throws {
    let push = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold)
    world.weather.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerFault.self) { try await server.deliver(response) }
    #expect(world.am.verify(push) == .isTrue)
    await #expect { try await server.deliver(response) } throws: {
      if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try await server.pendingRequests().isEmpty)
  }

  /// AM's response to a second attempt says nothing about the first, nor does the response of a gateway.
  @Test(arguments: [AMWorld.Weather.answerIsLost, .status(403)])
  func `After a fault, a refusal by AM makes the outcome unknown`(
    trouble: AMWorld.Weather
  ) async throws {
    _ = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold)
    world.weather.withLock { $0 = [trouble, .status(400)] }
    await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerFault)?.effect == .retry }
    await #expect { try await server.deliver(response) } throws: {
      if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try world.vault.message(response.request.pending.transaction)?.state == .unknown)
  }

  @Test func `Is tried again when storage could not be read`() async throws {
    let push = try world.bring()
    let shelf = FlawedShelf(world.vault)
    let server = try world.server(shelf: shelf)
    let response = try await world.answer(server, .hold)
    world.weather.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerFault.self) { try await server.deliver(response) }
    shelf.isUnreadable.withLock { $0 = true }
    await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerFault)?.effect == .retry }
    shelf.isUnreadable.withLock { $0 = false }
    #expect(try await server.deliver(response).decision == .accept)
    #expect(world.am.verify(push) == .isTrue)
  }

  @Test func `That AM refuses is over`() async throws {
    _ = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold)
    world.weather.withLock { $0 = [.status(400)] }
    await #expect { try await server.deliver(response) } throws: { fault in
      if case TokenServerFault.answerInvalid(let text) = fault { text.contains("no longer waits") } else { false }
    }
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test(
    arguments: [500, 502, 503, 504, 429, 204, 302, 401, 403, 404, 501].map(AMWorld.Weather.status) + [.page])
  func `That something in between refuses is tried again`(trouble: AMWorld.Weather) async throws {
    let push = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold)
    world.weather.withLock { $0 = [.answerIsLost, trouble, trouble] }
    for _ in 0..<3 {
      await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerFault)?.effect == .retry }
    }
    #expect(try await server.deliver(response).decision == .accept)
    #expect(Set(world.requests.withLock { $0.suffix(4).map(\.body) }).count == 1)
    #expect(world.am.verify(push) == .isTrue)
  }

  @Test func `Too late is over`() async throws {
    _ = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold)
    world.timekeeper.advance(by: .seconds(121))
    await #expect { try await server.deliver(response) } throws: {
      if case TokenServerFault.answerInvalid = $0 { true } else { false }
    }
  }

  @Test func `Is kept by a service that does not know the account's new name yet`() async throws {
    let push = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold)
    world.weather.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerFault.self) { try await server.deliver(response) }
    try world.vault.rename(AccountID("ann"), to: AccountID("anna"), AuditEntry(.renamed, wallClockMilliseconds: 0))
    await #expect { try await server.deliver(response) } throws: { ($0 as? TokenServerFault)?.effect == .retry }
    #expect(try world.vault.message(response.request.pending.transaction)?.state == .pending)
    #expect(world.am.verify(push) == .isTrue)
  }

  // MARK: Crashes

  /// The state after a crash between the journal entry and AM's response. AM keeps the last answer, so no other answer
  /// may be sent.
  @Test(arguments: [true, false]) func `That a crash interrupted is never asked again`(hadArrived: Bool) async throws {
    _ = try world.bring()
    let server = try world.server()
    let response = try await world.answer(server, .hold, key: "k1")
    let pending = response.request.pending
    let intent = AnswerIntent(
      transaction: pending.transaction, server: pending.server, account: pending.account, idempotencyKey: "k1",
      decision: .accept)
    try world.vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 0))
    if hadArrived { _ = try await server.deliver(response) }
    let restarted = try world.server()
    #expect(try await restarted.pendingRequests().isEmpty)
    if hadArrived {
      let status = try await restarted.status(of: pending.transaction, account: pending.account)
      #expect(status.state == .authenticated && status.idempotencyKey == "k1")
    } else {
      await #expect { try await restarted.status(of: pending.transaction, account: pending.account) } throws: {
        if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
      }
    }
    try world.vault.settle(pending.transaction, AuditEntry(.settled, wallClockMilliseconds: 0))
    #expect(try await restarted.pendingRequests().isEmpty)
    await #expect(throws: TokenServerFault.requestNotFound) { try await restarted.open(pending) }
  }

  /// The bytes are stored, and are sent until the request expires.
  @Test(arguments: [true, false]) func `That a crash interrupted is sent again`(hadArrived: Bool) async throws {
    let push = try world.bring()
    let intent = try await interrupted(hadArrived: hadArrived)
    let body = try #require(intent.body)
    let restarted = try world.server()
    world.weather.withLock { $0 = [.status(503)] }
    await #expect { try await restarted.repeated(intent, body) } throws: { ($0 as? TokenServerFault)?.effect == .retry }
    let status = try await restarted.repeated(intent, body)
    #expect(status.state == .authenticated && status.idempotencyKey == "k1")
    #expect(Set(world.requests.withLock { $0.suffix(2).map(\.body) }) == [body])
    #expect(world.am.verify(push) == .isTrue)
    #expect(try world.vault.message(intent.transaction)?.state == .approved)
    // The request has ended, and the answer is not sent again.
    let sent = world.requests.withLock { $0.count }
    #expect(try await restarted.repeated(intent, body).state == .authenticated)
    #expect(world.requests.withLock { $0.count } == sent)
  }

  @Test(arguments: [true, false]) func `That a crash interrupted is unknown when AM has ended it or it has expired`(
    isInTime: Bool
  ) async throws {
    let push = try world.bring()
    let intent = try await interrupted(hadArrived: true)
    let body = try #require(intent.body)
    #expect(world.am.verify(push) == .isTrue)
    if !isInTime { world.timekeeper.advance(by: .seconds(121)) }
    let restarted = try world.server()
    let sent = world.requests.withLock { $0.count }
    await #expect { try await restarted.repeated(intent, body) } throws: {
      if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
    }
    #expect(world.requests.withLock { $0.count } == (isInTime ? sent + 1 : sent))
    #expect(try world.vault.message(intent.transaction)?.state == .unknown)
  }

  /// The stored state after a crash directly after the journal entry, or directly after AM's response.
  private func interrupted(hadArrived: Bool) async throws -> AnswerIntent {
    let server = try world.server()
    let response = try await world.answer(server, .hold, key: "k1")
    #expect(response.isRepeatedAfterCut)
    let pending = response.request.pending
    let intent = AnswerIntent(
      transaction: pending.transaction, server: pending.server, account: pending.account, idempotencyKey: "k1",
      decision: .accept, body: response.body)
    try world.vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 0))
    if hadArrived {
      world.weather.withLock { $0 = [.answerIsLost] }
      await #expect(throws: TokenServerFault.self) { try await server.deliver(response) }
    }
    #expect(try world.vault.unsettledIntents() == [intent])
    return intent
  }
}

/// A message store that cannot be read for some time.
private final class FlawedShelf: MessageShelf {
  let isUnreadable = Mutex(false)
  private let vault: Vault

  init(_ vault: Vault) { self.vault = vault }

  func keep(_ message: DeliveredMessage) throws(CustodyFault) -> Bool { try vault.keep(message) }
  func message(_ transaction: TransactionID) throws(CustodyFault) -> DeliveredMessage? {
    if isUnreadable.withLock({ $0 }) { throw .storage("input/output error") }
    return try vault.message(transaction)
  }
  func pendingMessages() throws(CustodyFault) -> [DeliveredMessage] { try vault.pendingMessages() }
  func end(
    _ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?
  ) throws(CustodyFault) {
    try vault.end(transaction, as: state, answerKey: answerKey)
  }
}
