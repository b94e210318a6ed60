// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import PINProtection
import Secrets
import ServerBackends
import Synchronization
import Testing
import Vault

@testable import TokenDaemon

/// A user session that the token server no longer knows.
@Suite(.timeLimit(.minutes(5))) struct LostSessionTests {
  private static let account = AccountID("ann")

  private func session(_ account: AccountID = Self.account) -> UserSession {
    UserSession(account: account, until: SystemClock().now + .seconds(600), accessToken: "T")
  }

  private func changePIN(in fixture: ServiceFixture, at server: SessionServer) async throws -> PINChangeTicket {
    try await fixture.handler.accounts.beginPINChange(
      of: Self.account, typing: PIN(digits: SecretBytes(copying: Array("13579".utf8))), at: server)
  }

  /// Fails if the user stays logged in, so that each PIN change ends with 9010.
  @Test("It ends here too, and the PIN that was typed begins a new one") func lostSession() async throws {
    let fixture = try ServiceFixture()
    fixture.service.set(session())
    let server = SessionServer(known: [])
    _ = try await changePIN(in: fixture, at: server)
    #expect(server.sessions == ["T", nil])
    #expect(fixture.service.session == nil)
    let last = try #require(try fixture.vault.auditLines(newest: 1).first?.entry)
    #expect(last.kind == .loggedOut && last.account == Self.account)
  }

  @Test("A session that the server knows is used, and one of another account is not") func knownSession() async throws {
    let fixture = try ServiceFixture()
    fixture.service.set(session())
    let server = SessionServer(known: ["T"])
    _ = try await changePIN(in: fixture, at: server)
    fixture.service.set(session(AccountID("bob")))
    _ = try await changePIN(in: fixture, at: server)
    #expect(server.sessions == ["T", nil] && fixture.service.session?.account == AccountID("bob"))
  }

  @Test("A token that is refused without a session is not retried") func refusedToken() async throws {
    let fixture = try ServiceFixture()
    let server = SessionServer(known: [], refusesAll: true)
    await #expect(throws: TokenServerError.notAuthenticated("no")) { try await changePIN(in: fixture, at: server) }
    #expect(server.sessions == [nil])
  }
}

/// A server client that records the session of each PIN change.
private final class SessionServer: UserSessions {
  private let scripted = ScriptedServerClient()
  private let known: Set<String>
  private let refusesAll: Bool
  private let used = Mutex<[String?]>([])

  init(known: Set<String>, refusesAll: Bool = false) {
    self.known = known
    self.refusesAll = refusesAll
  }

  var id: TokenServerID { scripted.id }
  var enrollments: Enrollments { scripted.enrollments }
  /// The access token of each PIN change; nil for one without a session.
  var sessions: [String?] { used.withLock { $0 } }

  func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerError) -> PINChangeTicket {
    used.withLock { $0.append(session?.accessToken) }
    if refusesAll || session.map({ !known.contains($0.accessToken) }) == true { throw .notAuthenticated("no") }
    return PINChangeTicket(
      profile: "P", id: "1", token: SecretBytes(copying: []),
      session: session ?? UserSession(account: account, until: SystemClock().now, accessToken: "U"),
      policy: BackendSettings.pinPolicy(digits: 5))
  }

  func pinLength(of account: AccountID) async throws(TokenServerError) -> Int { 5 }
  func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerError) -> UserSession {
    throw .refused("not used")
  }
  func logOut(_ session: UserSession) async throws(TokenServerError) { throw .refused("not used") }
  func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession { ticket.session }

  func validate() async throws(TokenServerError) -> Validation { try await scripted.validate() }
  func hints() -> AsyncThrowingStream<Hint, any Error> { scripted.hints() }
  func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    try await scripted.pendingRequests()
  }
  func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    try await scripted.open(pending)
  }
  func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    try await scripted.seal(response)
  }
  func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    try await scripted.deliver(response)
  }
  func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerError) -> RemoteStatus {
    try await scripted.status(of: transaction, account: account)
  }
}
