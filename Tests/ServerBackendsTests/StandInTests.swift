// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Secrets
import Testing

@testable import MobileAuth
@testable import ServerBackends

/// Authenticators that stand for the biometric check of a server which verifies none.
@Suite("An authenticator that stands for a fingerprint check", .timeLimit(.minutes(5))) struct StandInTests {
  private let fixture: OperationsFixture
  private let card = try! P256PrivateKey()
  private let ann = AccountID("ann")
  private let pinChallenge = Challenge.pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0)))
  private let standIns: StandIns
  private let account: AccountRecord

  init() throws {
    fixture = try OperationsFixture()
    account = try fixture.account("ann") { $0.pin = PINMetadata(.token, length: 5) }
    try fixture.store.setPIN(
      of: ann, to: pin("13579"), keys: .init(copying: []), limit: 3, parameters: .standard, in: fixture.environment)
    let server = try #require(try fixture.store.servers().first { $0.id == OperationsFixture.able })
    standIns = fixture.context.standIns(of: [account], at: server, in: fixture.environment)
  }

  // MARK: Registration

  private final class Client: BiometricChecks, ScriptedForwarding {
    let scripted = ScriptedServerClient()
    let standIns: StandIns?
    init(_ standIns: StandIns?) { self.standIns = standIns }
  }

  private func operation() throws -> AccountStandIns {
    try #require(AccountStandIns(of: try fixture.store.account(ann), at: Client(standIns), fixture.pins))
  }

  /// Begins to register, and holds the button.
  private func register(_ id: String) async throws -> Task<Void, any Error> {
    let (operation, panel) = (try operation(), fixture.panel)
    return await holding { try await operation.register(id, on: panel) { _ in } }
  }

  private func holding(_ body: @escaping @Sendable () async throws -> Void) async -> Task<Void, any Error> {
    let count = fixture.panel.prompts.count
    let task = Task { try await body() }
    await fixture.panel.until(challenges: count + 1)
    fixture.panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
    return task
  }

  /// Answers in the use of the driver that is asked next, after the guard time.
  private func answer(_ driver: ScriptedDriver, _ make: (DriverCall) throws -> DriverEvent) async throws {
    try await fixture.untilAsked(driver, times: driver.ended + 1)
    driver.say(try make(try #require(driver.calls.last)))
    driver.end()
  }

  private func data(_ challenge: [UInt8], by key: P256PrivateKey, _ more: String = "") throws -> AuthenticatorData {
    let signature = try key.derSignature(ofDigest: challenge).base64
    let point = ([4] + key.publicKey.x + key.publicKey.y).base64
    let text = "{\"signature\":\"\(signature)\",\"public_key\":\"\(point)\"\(more)}"
    return AuthenticatorData(SecretBytes(copying: Array(text.utf8)))
  }

  private func registerBadge() async throws {
    let task = try await register("badge")
    try await answer(fixture.badge) { .data(try data($0.challenge, by: card)) }
    await fixture.panel.until(challenges: 3)
    fixture.panel.perform(.typed("13579"))
    try await task.finished()
  }

  private let finger = AuthenticatorData(SecretBytes(copying: []), registration: [7])

  @Test("Registering wants a hold, then the authenticator, then the PIN") func registration() async throws {
    let task = try await register("finger")
    try await answer(fixture.fingerprintReader) { _ in .data(finger) }
    await fixture.panel.until(challenges: 3)
    #expect(try fixture.store.account(ann).standIns.isEmpty)
    fixture.panel.perform(.typed("00000"))
    await fixture.panel.until(challenges: 4)
    fixture.panel.perform(.typed("13579"))
    try await task.finished()
    #expect(fixture.panel.prompts.first == .confirmation && fixture.panel.prompts.last == .digits(count: 5))
    #expect(try fixture.store.account(ann).standIns == [StandIn("finger", .finger, registration: [7])])
    #expect(fixture.store.details(of: .authenticatorRegistered) == ["finger"])
    let listed = try operation().all()
    #expect(listed["finger"]?.isRegistered == true && listed["finger"]?.isSupported == true)
    await #expect(throws: AuthenticatorError.alreadyRegistered("finger", ann)) {
      try await operation().register("finger", on: fixture.panel) { _ in }
    }
  }

  @Test("A card must sign the challenge of the registration") func unverifiable() async throws {
    let makers: [(DriverCall) throws -> AuthenticatorData] = [
      { _ in AuthenticatorData(SecretBytes(copying: Array("4711".utf8))) },
      { _ in try data([UInt8](repeating: 1, count: 32), by: card) },
      { try data($0.challenge, by: card, ",\"authenticator_data\":\"\([UInt8](repeating: 1, count: 37).base64)\"") },
    ]
    for make in makers {
      let task = try await register("badge")
      try await answer(fixture.badge) { .data(try make($0)) }
      await #expect { try await task.finished() } throws: { ($0 as? AuthenticatorError)?.number == 9027 }
    }
    #expect(try fixture.store.account(ann).standIns.isEmpty)
  }

  @Test("Codes that are typed are not offered, and an unknown one is an error") func offered() async throws {
    #expect(try operation().all().map(\.identifier) == ["pin", "finger", "badge", "reader"])
    await #expect(throws: AuthenticatorError.unknown("number", ann, known: ["pin", "finger", "badge", "reader"])) {
      try await operation().register("number", on: fixture.panel) { _ in }
    }
  }

  @Test("An account without a PIN registers none, and one whose server checks no fingerprint has none")
  func withoutPINOrChecks() async throws {
    var without = account
    without.pin = nil
    try fixture.store.put(without, nil)
    await #expect(throws: AuthenticatorError.noPIN(ann)) {
      try await operation().register("finger", on: fixture.panel) { _ in }
    }
    let other = try fixture.account("bob")
    let others = try #require(AccountStandIns(of: other, at: Client(standIns), fixture.pins))
    #expect(throws: AuthenticatorError.noBiometricChecks(other.id)) { try others.all() }
    #expect(AccountStandIns(of: other, at: Client(nil), fixture.pins) == nil)
    #expect(AccountStandIns(of: other, at: ScriptedServerClient(), fixture.pins) == nil)
  }

  @Test("Deregistering wants a hold") func deregistration() async throws {
    try standIns.add(StandIn("finger", .finger, registration: [7]), to: ann)
    let (operation, panel) = (try operation(), fixture.panel)
    let task = await holding { try await operation.deregister("finger", on: panel) { _ in } }
    try await task.finished()
    #expect(try fixture.store.account(ann).standIns.isEmpty)
    #expect(fixture.store.details(of: .authenticatorDeregistered) == ["finger"])
    #expect(standIns.challenge(of: request(1), for: ann, orPIN: pinChallenge) == pinChallenge)
    await #expect(throws: AuthenticatorError.notRegistered("finger", ann)) {
      try await operation.deregister("finger", on: panel) { _ in }
    }
    await #expect(throws: AuthenticatorError.pinStays(ann)) {
      try await operation.deregister("pin", on: panel) { _ in }
    }
  }

  // MARK: Requests

  private func request(_ number: Int) -> TransactionID {
    TransactionID("00000000-0000-4000-8000-00000000000\(number)")!
  }

  /// The response of a request that one authenticator answers.
  private func response(
    to number: Int, _ challenge: Challenge, _ authenticator: String, _ data: AuthenticatorData
  ) throws -> ChallengeResponse {
    let pending = PendingMobileAuthRequest(
      transaction: request(number), server: OperationsFixture.able, account: ann, sentAtMilliseconds: 0,
      timeToLive: .seconds(60), message: nil, deadline: fixture.clock.now + .seconds(60))
    let opened = try pending.opened(
      VerifiedContents(
        transaction: pending.transaction, account: ann, type: "t", challenge: challenge, answerContext: []))
    return try #require(
      opened.answered(
        by: Gesture(.authenticator, held: .zero), with: authenticator, data: data, after: .zero, idempotencyKey: "k"))
  }

  private func source(_ number: Int, _ authenticator: String) throws -> (Challenge, AuthenticatorSource) {
    let challenge = standIns.challenge(of: request(number), for: ann, orPIN: pinChallenge)
    guard case .custom(let custom) = challenge else { throw CancellationError() }
    #expect(custom.fallback == PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0)))
    return (challenge, try #require(custom[authenticator]))
  }

  @Test("A finger stands in after a right PIN since power-on, for a limited time") func fingerAfterThePIN() throws {
    try fixture.account("ann") { $0.standIns = [StandIn("finger", .finger, registration: [7])] }
    let server = try #require(try fixture.store.servers().first { $0.id == OperationsFixture.able })
    let context = fixture.context
    let started = context.standIns(of: try fixture.store.accounts(), at: server, in: fixture.environment)
    #expect(started.challenge(of: request(1), for: ann, orPIN: pinChallenge) == pinChallenge)
    started.noteRightPIN(of: ann)
    guard case .custom(let custom) = started.challenge(of: request(1), for: ann, orPIN: pinChallenge) else {
      Issue.record("the finger is not asked for")
      return
    }
    #expect(custom["finger"]?.registration == [7] && custom["finger"]?.kind == .biometric)
    fixture.clock.advance(by: context.unlockedTokens.lifetime)
    #expect(started.challenge(of: request(1), for: ann, orPIN: pinChallenge) == pinChallenge)
  }

  @Test("A card signs the challenge of one request, and no other") func cardSigns() async throws {
    try await registerBadge()
    let (challenge, source) = try source(1, "badge")
    try standIns.verify(try response(to: 1, challenge, "badge", try data(source.challenge, by: card)))
    let (other, _) = try self.source(2, "badge")
    #expect(throws: TokenServerError.self) {
      try standIns.verify(try response(to: 2, other, "badge", try data(source.challenge, by: card)))
    }
    // Without a PIN, the card alone is asked.
    guard case .custom(let alone) = standIns.challenge(of: request(1), for: ann, orPIN: .impossible(because: "")) else {
      Issue.record("the card is not asked for")
      return
    }
    #expect(alone.fallback == nil)
  }

  @Test("Three wrong signatures in a row end the registration; a right one between them starts again")
  func threeWrongSignatures() async throws {
    try await registerBadge()
    let (challenge, source) = try source(1, "badge")
    let wrong = try response(to: 1, challenge, "badge", try data(source.challenge, by: try P256PrivateKey()))
    func isRevoked() -> Bool? {
      do { try standIns.verify(wrong) } catch {
        if case .authenticatorFailed(let failure) = error { return failure.isRevoked }
      }
      return nil
    }
    #expect(isRevoked() == false && isRevoked() == false)
    try standIns.verify(try response(to: 1, challenge, "badge", try data(source.challenge, by: card)))
    #expect(isRevoked() == false && isRevoked() == false && isRevoked() == true)
    #expect(try fixture.store.account(ann).standIns.isEmpty)
    #expect(fixture.store.details(of: .authenticatorRevoked) == ["badge: 3 wrong signatures"])
    // The answer to a prompt that was armed before.
    #expect(throws: TokenServerError.self) {
      try standIns.verify(try response(to: 1, challenge, "badge", try data(source.challenge, by: card)))
    }
  }

  @Test("A finger that was replaced does not answer a request that was opened before") func replacedFinger() throws {
    try standIns.add(StandIn("finger", .finger, registration: [7]), to: ann)
    let (challenge, _) = try source(1, "finger")
    try standIns.verify(try response(to: 1, challenge, "finger", finger))
    try standIns.remove("finger", of: ann)
    try standIns.add(StandIn("finger", .finger, registration: [8]), to: ann)
    #expect(throws: TokenServerError.self) {
      try standIns.verify(try response(to: 1, challenge, "finger", finger))
    }
    let (now, _) = try source(1, "finger")
    try standIns.verify(try response(to: 1, now, "finger", finger))
    // Its hours end while the request waits.
    fixture.clock.advance(by: fixture.context.unlockedTokens.lifetime)
    #expect(throws: TokenServerError.self) { try standIns.verify(try response(to: 1, now, "finger", finger)) }
  }

  @Test("A new registration begins with no wrong signatures") func countsBeginAgain() async throws {
    func wrong() throws -> Bool? {
      let (challenge, source) = try source(1, "badge")
      do {
        try standIns.verify(
          try response(to: 1, challenge, "badge", try data(source.challenge, by: try P256PrivateKey())))
      } catch { if case .authenticatorFailed(let failure) = error as? TokenServerError { return failure.isRevoked } }
      return nil
    }
    let point = [4] + card.publicKey.x + card.publicKey.y
    try standIns.add(StandIn("badge", .badge(key: point), registration: []), to: ann)
    #expect(try wrong() == false && wrong() == false)
    try standIns.remove("badge", of: ann)
    try standIns.add(StandIn("badge", .badge(key: point), registration: []), to: ann)
    #expect(try wrong() == false && wrong() == false && wrong() == true)
  }
}
