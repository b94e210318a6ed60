// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Synchronization
import Testing

@testable import ServerBackends

@Suite("Operations with the driver of an authenticator", .timeLimit(.minutes(5))) struct DriverOperationTests {
  private let fixture: OperationsFixture
  private let account: AccountRecord
  private let server: AuthenticatorServer
  private let data = AuthenticatorData(SecretBytes(copying: Array("signed".utf8)))

  init() throws {
    fixture = try OperationsFixture()
    account = try fixture.account("A")
    server = AuthenticatorServer(AuthenticatorServer.list())
  }

  private var session: UserSession {
    UserSession(account: account.id, until: fixture.clock.now + .seconds(600), accessToken: "T")
  }

  private func authenticators() throws -> AccountAuthenticators {
    try AccountAuthenticators(of: account, at: server, fixture.pins)
  }

  private func authenticator(_ id: String) -> Authenticator {
    Authenticator(identifier: id, name: id, kind: .custom, isRegistered: true, isSupported: true)
  }

  /// Waits until the driver is asked, after the guard time.
  private func asked(_ driver: ScriptedDriver, times: Int = 1) async throws {
    try await fixture.untilAsked(driver, times: times)
  }

  private func logIn(with driver: ScriptedDriver) -> Task<(session: UserSession, used: String), any Error> {
    let (wanted, panel) = (authenticator(driver.authenticator), fixture.panel)
    return Task { try await authenticators().logIn(with: wanted, on: panel) { _ in } }
  }

  @Test("The driver's data logs in") func login() async throws {
    let task = logIn(with: fixture.reader)
    try await asked(fixture.reader)
    fixture.reader.say(.data(data))
    #expect(try await task.finished().session.accessToken == "U")
    #expect(server.calls == ["log in with reader: signed"] && fixture.reader.calls.map(\.step) == [.authenticate])
    #expect(fixture.panel.prompts == [.authenticator(orPINOf: 5, hold: false)])
  }

  @Test("The PIN, typed meanwhile, logs in and ends the driver's use") func typedPIN() async throws {
    let task = logIn(with: fixture.reader)
    try await asked(fixture.reader)
    fixture.panel.perform(.typed("13579"))
    #expect(try await task.finished().used == "pin")
    #expect(server.calls.isEmpty && fixture.panel.prompts.count == 1)
    try await eventually("the driver's use ends") { fixture.reader.ended == 1 }
  }

  @Test("The PIN, typed in place of the hold, logs in without the driver") func typedInPlaceOfTheHold() async throws {
    let task = logIn(with: fixture.badge)
    await fixture.panel.until(challenges: 1)
    fixture.panel.perform(.typed("13579"))
    #expect(try await task.finished().used == "pin")
    #expect(server.calls.isEmpty && fixture.badge.calls.isEmpty)
  }

  /// Fails if one failure of a reader ends the login, as it does no request.
  @Test("A driver that fails is asked three times, then the login wants the PIN") func failingDriver() async throws {
    let task = logIn(with: fixture.reader)
    for attempt in 1...3 {
      try await asked(fixture.reader, times: attempt)
      fixture.reader.say(.failed("no reader"))
    }
    await fixture.panel.until(challenges: 4)
    fixture.panel.perform(.typed("13579"))
    #expect(try await task.finished().used == "pin")
    #expect(fixture.reader.calls.count == 3 && server.calls.isEmpty && fixture.panel.prompts.last == .digits(count: 5))
    #expect(fixture.store.details(of: .authenticatorFailed) == Array(repeating: "reader: no reader", count: 3))
  }

  @Test("A driver that works again after a failure logs in") func workingAgain() async throws {
    let task = logIn(with: fixture.reader)
    try await asked(fixture.reader)
    fixture.reader.say(.failed("no reader"))
    try await asked(fixture.reader, times: 2)
    fixture.reader.say(.data(data))
    #expect(try await task.finished().used == "reader")
  }

  @Test("The driver's fallback asks for the PIN") func fallback() async throws {
    let task = logIn(with: fixture.reader)
    try await asked(fixture.reader)
    fixture.reader.say(.fallback)
    await fixture.panel.until(challenges: 2)
    fixture.panel.perform(.typed("13579"))
    #expect(try await task.finished().used == "pin")
    #expect(server.calls.isEmpty)
  }

  @Test("Where the authenticator proves no act, a login needs a hold first") func holdFirst() async throws {
    let task = logIn(with: fixture.badge)
    await fixture.panel.until(challenges: 1)
    #expect(fixture.panel.prompts == [.authenticator(orPINOf: 5, hold: true)] && fixture.badge.calls.isEmpty)
    fixture.panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
    try await asked(fixture.badge)
    fixture.badge.say(.data(data))
    try await task.finished()
  }

  @Test("The driver's cancellation ends the login") func canceledByDriver() async throws {
    let task = logIn(with: fixture.reader)
    try await asked(fixture.reader)
    fixture.reader.say(.canceled("no"))
    await #expect(throws: PanelDialog.EntryError.authenticatorCanceled("no")) { try await task.finished() }
    #expect(server.calls.isEmpty)
  }

  @Test("A denial at the panel ends a use of the driver") func denied() async throws {
    let task = logIn(with: fixture.reader)
    try await asked(fixture.reader)
    fixture.panel.perform(.gesture(Gesture(.doublePress, held: .zero)))
    await #expect(throws: PanelDialog.EntryError.canceled) { try await task.finished() }
    try await eventually("the driver's use ends") { fixture.reader.ended == 1 }
  }

  @Test("A registration needs a hold, then the driver's data") func registration() async throws {
    let panel = fixture.panel
    let task = Task { try await authenticators().register("reader", in: session, on: panel) { _ in } }
    await fixture.panel.until(challenges: 1)
    #expect(fixture.panel.prompts == [.confirmation] && fixture.reader.calls.isEmpty)
    fixture.panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
    try await asked(fixture.reader)
    fixture.reader.say(.data(data))
    try await task.finished()
    #expect(server.calls == ["register reader with signed in T"] && fixture.reader.calls.map(\.step) == [.register])
  }

  @Test("A reader that is not there cannot be used") func unavailable() async throws {
    fixture.reader.set(available: false)
    await #expect(throws: AuthenticatorError.notUsableNow("reader")) {
      try await logIn(with: fixture.reader).finished()
    }
  }

  /// A lost key must not keep its registration alive; a program that objects may.
  @Test(
    "A driver is notified of a deregistration, and only its cancellation stops it",
    arguments: [
      (.data(AuthenticatorData(SecretBytes(copying: [65]))), "A"), (.failed("x"), "nothing"), (.canceled("n"), nil),
    ]
      as [(DriverEvent, String?)])
  func deregistration(event: DriverEvent, data: String?) async throws {
    let panel = fixture.panel
    let task = Task {
      let data = try await authenticators().endRegistration(of: "reader", on: panel) { _ in }
      return try await authenticators().deregister("reader", with: data, in: session)
    }
    try await asked(fixture.reader)
    fixture.reader.say(event)
    if let data {
      #expect(try await task.finished())
      #expect(server.calls == ["deregister reader with \(data) in T"])
    } else {
      await #expect(throws: PanelDialog.EntryError.authenticatorCanceled("n")) { try await task.finished() }
    }
    #expect(try authenticators().notifiesDriver(of: "reader") && !authenticators().notifiesDriver(of: "number"))
  }
}
