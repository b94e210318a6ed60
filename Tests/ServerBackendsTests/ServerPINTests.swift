// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Synchronization
import Testing

@testable import ServerBackends

@Suite("A PIN that the server verifies", .timeLimit(.minutes(1))) struct ServerPINTests {
  private let fixture: OperationsFixture
  private let account: AccountRecord

  init() throws {
    fixture = try OperationsFixture()
    account = try fixture.account("A") { $0.enrollment = EnrollmentID("enrollment of A") }
  }

  private func session(_ account: AccountID, _ token: String = "T") -> UserSession {
    UserSession(account: account, until: fixture.clock.now + .seconds(600), accessToken: token)
  }

  private func logIn(
    at server: SessionServer, _ said: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws -> UserSession {
    try await fixture.pins.logIn(account, at: server, length: 5, on: fixture.panel, said)
  }

  private func change(at server: SessionServer) async throws -> UserSession {
    try await fixture.pins.change(of: account, at: server, length: 5, on: fixture.panel) { _ in }
  }

  // MARK: Login

  @Test("A wrong one is counted, recorded and asked for again") func wrong() async throws {
    let server = SessionServer(faults: [.pinIncorrect(FailureCounts(max: 3, previous: 1))])
    let said = Mutex<[String]>([])
    let session = Task { try await logIn(at: server) { text in said.withLock { $0.append(text) } } }
    await fixture.enter("11111", "13579")
    #expect(try await session.finished().accessToken == "U")
    #expect(said.withLock { $0.last } == "wrong PIN, 2 of 3 attempts left: type it again, then Enter")
    #expect(fixture.store.audit.map(\.kind) == [.pinWrong, .loggedIn])
    #expect(fixture.users.calls == ["A: 1 of 3", "log pin-wrong", "log logged-in", "A: right"])
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 2)) && fixture.panel.shown.last == .confirmed)
  }

  @Test("An account that the server revokes is removed, and the loss is shown") func revoked() async throws {
    let server = SessionServer(faults: [.userDeregistered])
    let session = Task { try await logIn(at: server) }
    await fixture.enter("13579")
    await #expect(throws: TokenServerError.userDeregistered) { try await session.finished() }
    #expect(try fixture.store.accounts().isEmpty)
    #expect(fixture.users.calls == ["log wiped", "A: lost", "reload"])
    #expect(fixture.panel.shown.last == .mustEnroll)
  }

  /// Fails if the server's revocation of a former enrollment removes the present one.
  @Test("An account that was enrolled again meanwhile stays") func enrolledAgain() async throws {
    var again = account
    again.enrollment = EnrollmentID("another enrollment")
    try fixture.store.put(again, nil)
    let session = Task { try await logIn(at: SessionServer(faults: [.userDeregistered])) }
    await fixture.enter("13579")
    await #expect(throws: TokenServerError.userDeregistered) { try await session.finished() }
    #expect(try fixture.store.accounts().count == 1)
    #expect(fixture.panel.shown.last != .mustEnroll)
  }

  // MARK: Change

  @Test("It is changed, and the session of the change is the new one") func changed() async throws {
    let server = SessionServer()
    let session = Task { try await change(at: server) }
    await fixture.enter("13579", "24680", "24680")
    #expect(try await session.finished().accessToken == "U")
    #expect(server.chosen == [pin("24680")])
    #expect(fixture.store.details(of: .pinChanged) == ["5 digits"])
  }

  @Test(
    "A change without the server's confirmation says that only the server knows which PIN is valid",
    arguments: [TokenServerError.unreachable("cable"), .noNetwork("cable")])
  func unconfirmed(fault: TokenServerError) async throws {
    let session = Task { try await change(at: SessionServer(changeFault: fault)) }
    await fixture.enter("13579", "24680", "24680")
    await #expect(throws: AccountError.pinUnconfirmed(why: "cable")) { try await session.finished() }
    #expect(fixture.store.audit.isEmpty && fixture.panel.shown.last != .confirmed)
  }

  // MARK: A session that the server no longer knows

  /// Fails if the user stays logged in, so that each PIN change ends with 9010.
  @Test("A session that the server no longer knows ends here too, and the PIN begins a new one")
  func lostSession() async throws {
    fixture.users.set(session(account.id))
    let server = SessionServer()
    _ = try await fixture.pins.beginChange(of: account.id, typing: pin("13579"), at: server)
    #expect(server.sessions == ["T", nil])
    #expect(fixture.users.session == nil)
    #expect(fixture.store.audit.map(\.kind) == [.loggedOut])
  }

  /// Fails if the fingerprints that the change ends stay registered at the server: it refuses that in such a session.
  @Test("A session of another authenticator is not used: the PIN begins one") func weakerSession() async throws {
    fixture.users.set(
      UserSession(
        account: account.id, until: fixture.clock.now + .seconds(600), accessToken: "T", authenticator: "badge"))
    let server = SessionServer(known: ["T"])
    _ = try await fixture.pins.beginChange(of: account.id, typing: pin("13579"), at: server)
    #expect(server.sessions == [nil])
  }

  @Test("A session that the server knows is used, and one of another account is not") func knownSession() async throws {
    fixture.users.set(session(account.id))
    let server = SessionServer(known: ["T"])
    _ = try await fixture.pins.beginChange(of: account.id, typing: pin("13579"), at: server)
    fixture.users.set(session(AccountID("B")))
    _ = try await fixture.pins.beginChange(of: account.id, typing: pin("13579"), at: server)
    #expect(server.sessions == ["T", nil] && fixture.users.session?.account == AccountID("B"))
  }

  @Test("A token that is refused without a session is not retried") func refusedToken() async throws {
    let server = SessionServer(faults: [.notAuthenticated("no"), .notAuthenticated("no")])
    await #expect(throws: TokenServerError.notAuthenticated("no")) {
      try await fixture.pins.beginChange(of: account.id, typing: pin("13579"), at: server)
    }
    #expect(server.sessions == [nil])
  }
}
