// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Synchronization
import Testing

@testable import ServerBackends

@Suite("The authenticators of an account", .timeLimit(.minutes(1))) struct AuthenticatorOperationTests {
  private let fixture: OperationsFixture
  private let account: AccountRecord

  init() throws {
    fixture = try OperationsFixture()
    account = try fixture.account("A")
  }

  private func authenticators(at server: AuthenticatorServer) throws -> AccountAuthenticators {
    try AccountAuthenticators(of: account, at: server, fixture.pins)
  }

  private var session: UserSession {
    UserSession(account: account.id, until: fixture.clock.now + .seconds(600), accessToken: "T")
  }

  private static func failure(_ status: Int?, isRevoked: Bool = false) -> TokenServerError {
    .authenticatorFailed(
      AuthenticatorFailure(
        number: 9027, reason: "no", info: status.map { .init(status: $0, data: "") }, isRevoked: isRevoked))
  }

  @Test("A server without sessions has none") func noneAtServer() throws {
    #expect(throws: AuthenticatorError.noneAtServer(account.id)) {
      try AccountAuthenticators(of: account, at: DeregisteringClient(), fixture.pins)
    }
  }

  // MARK: Login

  /// Fails if the PIN is asked for where the user named, or chose, something else.
  @Test(
    "A login uses the one that the user named or preferred; the PIN in place of one that cannot be used now only if it was not named"
  )
  func chosen() async throws {
    let (plain, chosen) = (AuthenticatorServer.list(), AuthenticatorServer.list(preferred: true))
    func wanted(_ id: String?, _ list: [Authenticator]?, preferred: String? = nil) async throws -> String? {
      try await authenticators(at: AuthenticatorServer(list, preferred: preferred)).ofLogin(id) { _ in }?.identifier
    }
    #expect(try await wanted(nil, nil) == nil)
    #expect(try await wanted("pin", nil, preferred: "number") == nil)
    #expect(try await wanted("number", plain) == "number")
    #expect(try await wanted(nil, chosen, preferred: "number") == "number")
    #expect(try await wanted(nil, plain, preferred: "number") == nil)
    #expect(
      try await wanted(nil, AuthenticatorServer.list(preferred: true, supported: false), preferred: "number") == nil)
    await #expect(throws: AuthenticatorError.unknown("x", account.id, known: ["pin", "number"])) {
      try await wanted("x", plain)
    }
    await #expect(throws: AuthenticatorError.notRegistered("number", account.id)) {
      try await wanted("number", AuthenticatorServer.list(registered: false))
    }
    for list in [AuthenticatorServer.list(supported: false), AuthenticatorServer.list(.biometric)] {
      await #expect(throws: AuthenticatorError.notUsableNow("number")) { try await wanted("number", list) }
    }
    await #expect(throws: TokenServerError.unreachable("cable")) { try await wanted(nil, nil, preferred: "number") }
  }

  private func logIn(at server: AuthenticatorServer, _ said: @escaping @Sendable (String) -> Void = { _ in })
    async throws
    -> (session: UserSession, used: String)
  {
    let authenticator = try #require(AuthenticatorServer.list()["number"])
    return try await authenticators(at: server).logIn(with: authenticator, on: fixture.panel, said)
  }

  @Test("A refused code is recorded, shown and asked for again") func refusedCode() async throws {
    let task = Task { try await logIn(at: AuthenticatorServer([], faults: [Self.failure(4001)])) }
    await fixture.enter("1111", "4711")
    let (session, used) = try await task.finished()
    #expect(session.accessToken == "U" && used == "number")
    #expect(fixture.store.audit.map(\.kind) == [.authenticatorFailed, .loggedIn])
    #expect(fixture.store.details(of: .loggedIn) == ["with number"])
    #expect(fixture.panel.shown.contains(.noSuchChoice) && fixture.panel.shown.last == .confirmed)
  }

  /// Fails if the name that a server chose reaches the user: it could ask for the PIN.
  @Test("The user is asked for the code of the identifier, not the PIN") func question() async throws {
    let said = Texts()
    let task = Task { try await logIn(at: AuthenticatorServer([])) { said.append($0) } }
    await fixture.enter("4711")
    try await task.finished()
    #expect(said.all == ["type the code of number for A, not the PIN, then Enter; Enter alone for the PIN"])
  }

  @Test("Enter alone chooses the PIN, and sends no code") func enterAlone() async throws {
    let server = AuthenticatorServer([])
    let task = Task { try await logIn(at: server) }
    await fixture.panel.until(challenges: 1)
    fixture.panel.perform(.enteredNothing)
    await fixture.panel.until(challenges: 2)
    fixture.panel.perform(.typed("13579"))
    #expect(try await task.finished().used == "pin")
    #expect(server.calls.isEmpty && fixture.panel.prompts == [.code(orEnterAlone: true), .digits(count: 5)])
    #expect(failures == [nil, nil])
  }

  /// Why each challenge followed the one before.
  private var failures: [AuthenticationStep.Failure?] {
    fixture.events.all.compactMap { event in
      guard case .step(let step) = event, case .challenged(.login, _, let failure) = step.event else { return nil }
      return .some(failure)
    }
  }

  /// Fails if a server can collect codes by refusing them.
  @Test("After three refused codes, the login wants the PIN, and says why each time") func threeCodes() async throws {
    let server = AuthenticatorServer([], faults: [Self.failure(4000), Self.failure(4000), Self.failure(4999)])
    let said = Texts()
    let task = Task { try await logIn(at: server) { said.append($0) } }
    await fixture.enter("1", "2", "3", "13579")
    #expect(try await task.finished().used == "pin")
    #expect(server.calls.count == 3)
    #expect(fixture.store.audit.map(\.kind) == Array(repeating: .authenticatorFailed, count: 3) + [.loggedIn])
    #expect(failures == [nil, .init(Self.failure(4000)), .init(Self.failure(4000)), .init(Self.failure(4999))])
    #expect(said.all.count { $0 == "number: no; try again" } == 2)
    #expect(said.all.count { $0 == "number: no; the PIN is wanted instead" } == 1)
  }

  @Test(
    "After a code that is refused for good, or was not judged, the login wants the PIN",
    arguments: [failure(5000), failure(3001), failure(nil), failure(4000, isRevoked: true)])
  func refusedForGood(fault: TokenServerError) async throws {
    let server = AuthenticatorServer([], faults: [fault])
    let task = Task { try await logIn(at: server) }
    await fixture.enter("4711", "13579")
    #expect(try await task.finished().used == "pin")
    #expect(server.calls.count == 1 && failures == [nil, .init(fault)])
  }

  // MARK: Registration

  @Test("Only what this token can use, and what is not registered, can be registered") func registrable() async throws {
    func check(_ id: String, _ list: [Authenticator]) async throws {
      try await authenticators(at: AuthenticatorServer(list)).requireRegistrable(id)
    }
    try await check("number", AuthenticatorServer.list(registered: false))
    await #expect(throws: AuthenticatorError.alreadyRegistered("number", account.id)) {
      try await check("number", AuthenticatorServer.list())
    }
    for list in [
      AuthenticatorServer.list(registered: false, supported: false),
      AuthenticatorServer.list(registered: false, .biometric),
    ] {
      await #expect(throws: AuthenticatorError.notUsable("number")) { try await check("number", list) }
    }
  }

  private func register(at server: AuthenticatorServer) -> Task<AuthenticatorInfo?, any Error> {
    Task {
      try await authenticators(at: server).register("number", in: session, on: fixture.panel) { _ in }
    }
  }

  @Test("A registration needs a hold, then the code") func registration() async throws {
    let server = AuthenticatorServer(AuthenticatorServer.list(registered: false))
    let task = register(at: server)
    await fixture.panel.until(challenges: 1)
    #expect(fixture.panel.prompts == [.confirmation] && server.calls.isEmpty)
    fixture.panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
    await fixture.panel.until(challenges: 2)
    fixture.panel.perform(.typed("4711"))
    #expect(try await task.finished() == AuthenticatorInfo(status: 2000, data: "registered"))
    #expect(server.calls == ["register number with 4711 in T"] && fixture.panel.shown.last == .confirmed)
  }

  @Test("A denial registers nothing") func denied() async throws {
    let server = AuthenticatorServer(AuthenticatorServer.list(registered: false))
    let task = register(at: server)
    await fixture.panel.until(challenges: 1)
    fixture.panel.perform(.gesture(Gesture(.doublePress, held: .zero)))
    await #expect(throws: PanelDialog.EntryError.canceled) { try await task.finished() }
    #expect(server.calls.isEmpty)
  }

  /// Fails if the user stays logged in here, so that each further registration ends with 9010.
  @Test("A session that the server no longer knows ends here too") func lostSession() async throws {
    fixture.users.set(session)
    let server = AuthenticatorServer(AuthenticatorServer.list(), faults: [.notAuthenticated("no")])
    await #expect(throws: AuthenticatorError.sessionEnded(account.id)) {
      _ = try await authenticators(at: server).deregister("number", with: nil, in: session)
    }
    #expect(fixture.users.session == nil && fixture.store.audit.map(\.kind) == [.loggedOut])
  }

  // MARK: Deregistration and preference

  @Test("Only what is registered can be deregistered, also without the server; the PIN cannot") func deregistrable()
    async throws
  {
    func check(_ id: String, _ list: [Authenticator]?) async throws -> [String] {
      try await authenticators(at: AuthenticatorServer(list)).requireDeregistrable(id).map(\.identifier)
    }
    #expect(try await check("number", AuthenticatorServer.list()) == ["pin", "number"])
    #expect(try await check("number", nil) == ["pin", "number"])
    await #expect(throws: AuthenticatorError.pinStays(account.id)) {
      try await check("pin", AuthenticatorServer.list())
    }
    await #expect(throws: AuthenticatorError.notRegistered("number", account.id)) {
      try await check("number", AuthenticatorServer.list(registered: false))
    }
    await #expect(throws: AuthenticatorError.unknown("x", account.id, known: ["pin", "number"])) {
      try await check("x", nil)
    }
  }

  @Test("Only what is registered can be preferred") func preferred() async throws {
    let server = AuthenticatorServer(AuthenticatorServer.list())
    try await authenticators(at: server).prefer("number")
    #expect(server.hasPreference(account.id))
    let other = AuthenticatorServer(AuthenticatorServer.list(registered: false))
    await #expect(throws: AuthenticatorError.notRegistered("number", account.id)) {
      try await authenticators(at: other).prefer("number")
    }
    #expect(!other.hasPreference(account.id))
  }
}

private final class Texts: Sendable {
  private let texts = Mutex<[String]>([])

  var all: [String] { texts.withLock { $0 } }
  func append(_ text: String) { texts.withLock { $0.append(text) } }
}
