// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Synchronization
import Testing

@testable import ServerBackends

@Suite("Operations with a fingerprint", .timeLimit(.minutes(5))) struct FingerprintOperationTests {
  private let fixture: OperationsFixture
  private let account: AccountRecord
  private let match = DriverEvent.data(AuthenticatorData(SecretBytes(copying: [])))

  init() throws {
    fixture = try OperationsFixture()
    account = try fixture.account("A")
  }

  private var session: UserSession {
    UserSession(account: account.id, until: fixture.clock.now + .seconds(600), accessToken: "T")
  }

  private func authenticators(at server: AuthenticatorServer) throws -> AccountAuthenticators {
    try AccountAuthenticators(of: account, at: server, fixture.pins)
  }

  /// Presents a finger, in another use of the reader each, after the guard time.
  private func present(_ events: DriverEvent...) async throws {
    for event in events {
      try await fixture.untilAsked(fixture.fingerprintReader, times: fixture.fingerprintReader.ended + 1)
      fixture.fingerprintReader.say(event)
      fixture.fingerprintReader.end()
    }
  }

  private func register(at server: AuthenticatorServer) -> Task<Void, any Error> {
    let (session, panel) = (session, fixture.panel)
    return Task { _ = try await authenticators(at: server).register("finger", in: session, on: panel) { _ in } }
  }

  private func holdAndPresent() async throws {
    await fixture.panel.until(challenges: 1)
    #expect(fixture.panel.prompts == [.confirmation] && fixture.fingerprintReader.calls.isEmpty)
    fixture.panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
    try await present(.data(AuthenticatorData(SecretBytes(copying: []), registration: [7])))
  }

  @Test("A registration needs a hold, the finger and the PIN, which is asked for again if it is wrong")
  func registration() async throws {
    let wrong = FailureCounts(max: 3, previous: 1)
    let server = AuthenticatorServer([], faults: [.pinIncorrect(wrong)])
    let task = register(at: server)
    try await holdAndPresent()
    await fixture.panel.until(challenges: 3)
    #expect(server.calls.isEmpty)
    fixture.panel.perform(.typed("00000"))
    await fixture.panel.until(challenges: 4)
    fixture.panel.perform(.typed("13579"))
    try await task.finished()
    #expect(server.calls == Array(repeating: "register finger [7] behind a PIN in T", count: 2))
    #expect(fixture.panel.prompts == [.confirmation, .denial, .digits(count: 5), .digits(count: 5)])
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 2)) && fixture.panel.shown.last == .confirmed)
    #expect(fixture.store.audit.map(\.kind) == [.pinWrong])
  }

  @Test("A registration that is canceled at the PIN registers nothing") func canceled() async throws {
    let server = AuthenticatorServer([])
    let task = register(at: server)
    try await holdAndPresent()
    await fixture.panel.until(challenges: 3)
    fixture.panel.perform(.gesture(Gesture(.cancelKeys, held: .zero)))
    await #expect(throws: PanelDialog.EntryError.canceled) { try await task.finished() }
    #expect(server.calls.isEmpty)
  }

  private func logIn(at server: AuthenticatorServer) -> Task<(session: UserSession, used: String), any Error> {
    let finger = Authenticator(
      identifier: "finger", name: "f", kind: .biometric, isRegistered: true, isSupported: true)
    let panel = fixture.panel
    return Task { try await authenticators(at: server).logIn(with: finger, on: panel) { _ in } }
  }

  @Test("The finger logs in") func login() async throws {
    let server = AuthenticatorServer([], registration: [7])
    let task = logIn(at: server)
    try await present(.canceled(FingerprintDriver.noMatch), match)
    #expect(try await task.finished().session.accessToken == "U")
    #expect(server.calls == ["log in with finger: "])
  }

  @Test("After three wrong fingers, the registration ends, and the login wants the PIN") func threeFingers()
    async throws
  {
    let server = AuthenticatorServer([], registration: [7])
    let task = logIn(at: server)
    let noMatch = DriverEvent.canceled(FingerprintDriver.noMatch)
    try await present(noMatch, noMatch, noMatch)
    await typePIN()
    #expect(try await task.finished().used == "pin")
    #expect(server.calls == ["revoke finger of A: 3 fingers did not match"])
    #expect(fixture.store.details(of: .authenticatorFailed) == ["finger: 3 fingers did not match"])
  }

  /// Fails if full storage gives three more tries.
  @Test("After three wrong fingers, the registration ends also if nothing can be stored") func fullStorage()
    async throws
  {
    let server = AuthenticatorServer([], registration: [7])
    fixture.store.registry.failWrites(after: 0)
    let task = logIn(at: server)
    let noMatch = DriverEvent.canceled(FingerprintDriver.noMatch)
    try await present(noMatch, noMatch, noMatch)
    await #expect(throws: StateStoreError.self) { try await task.finished() }
    #expect(server.calls == ["revoke finger of A: 3 fingers did not match"])
  }

  @Test("A reader that waits in vain leaves the PIN, and the registration") func noFinger() async throws {
    let server = AuthenticatorServer([], registration: [7])
    let task = logIn(at: server)
    try await present(.canceled(FingerprintDriver.noFinger))
    await typePIN()
    #expect(try await task.finished().used == "pin")
    #expect(server.calls.isEmpty)
  }

  private func typePIN() async {
    await fixture.panel.until(challenges: 2)
    #expect(fixture.panel.prompts.last == .digits(count: 5))
    fixture.panel.perform(.typed("13579"))
  }

  @Test("Unlocked tokens end with their time, and are replaced and removed") func unlockedTokens() {
    let tokens = UnlockedTokens(lifetime: .seconds(60))
    let name = UnlockedTokens.Name(server: OperationsFixture.able, profile: "P", authenticator: "finger")
    let other = UnlockedTokens.Name(server: OperationsFixture.able, profile: "Q", authenticator: "finger")
    let (one, two) = (SecretBytes(copying: [1]), SecretBytes(copying: [2]))
    let start = MonotonicInstant(uptime: .seconds(5))
    #expect(tokens.token(name, at: start) == nil)
    tokens.put(one, name, at: start)
    #expect(tokens.token(name, at: start + .seconds(59)) != nil && tokens.token(other, at: start) == nil)
    tokens.put(two, name, at: start + .seconds(30))
    let kept = tokens.token(name, at: start + .seconds(89))
    #expect(kept.map { SecretBytes.constantTimeEqual($0, two) } == true)
    #expect(tokens.token(name, at: start + .seconds(90)) == nil)
    tokens.put(one, name, at: start + .seconds(90))
    tokens.remove(name)
    #expect(tokens.token(name, at: start + .seconds(91)) == nil)
  }
}
