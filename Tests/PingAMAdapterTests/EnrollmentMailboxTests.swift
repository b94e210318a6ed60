// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("Registering with a mailbox that the user names", .timeLimit(.minutes(5))) struct EnrollmentMailboxTests {
  private let fixture: PingAMFixture

  init() throws { fixture = try PingAMFixture() }

  @discardableResult
  private func enroll(_ uri: String, _ mailbox: String?, at registry: CrashingRegistry? = nil) async throws
    -> AccountRecord
  {
    try await fixture.enrollment(registry: registry, mailbox: mailbox).enroll(uri, name: nil, trust: ServerTrust())
  }

  @Test("Is registered at AM", arguments: [nil, "secret=MFRGGZDF&period=30"] as [String?]) func isRegisteredAtAM(
    oath: String?
  )
    async throws
  {
    let account = try await enroll(fixture.am.registrationURI("ann", oath: oath), "desk/ann")
    #expect(account.delivery?.mailbox == "desk/ann")
    #expect(fixture.am.finishRegistration(of: "ann")?.deviceID == "desk/ann")
  }

  @Test(
    "Refuses what can be none",
    arguments: ["", "two words", "desk/+", "desk/#", "$share/desk", String(repeating: "x", count: 513)])
  func refusesWhatCanBeNone(mailbox: String) async throws {
    await #expect {
      try await enroll(fixture.am.registrationURI("ann"), mailbox)
    } throws: {
      if case MailboxError.malformed = $0 { true } else { false }
    }
    #expect(try fixture.vault.accounts().isEmpty)
    #expect(fixture.requests.withLock { $0.isEmpty })
  }

  @Test("Refuses another account's, also one that is still to be its", arguments: [false, true])
  func refusesAnotherAccountsAlsoOneThatIsStillToBeIts(isWanted: Bool)
    async throws
  {
    let account = try await fixture.enrolled()
    var taken = try #require(account.delivery?.mailbox)
    if isWanted {
      taken = "elsewhere"
      try fixture.vault.put(try account.requesting(mailbox: taken))
    }
    await #expect(throws: MailboxError.taken(taken, by: account.id)) {
      try await enroll(fixture.am.registrationURI("bob"), taken)
    }
    #expect(try fixture.vault.accounts().count == 1)
  }

  /// AM has accepted the registration, and a power loss prevented the token from storing its response.
  @Test("Is unchanged with the same code, and may change with a new code")
  func isUnchangedWithTheSameCodeAndMayChangeWithANewCode() async throws {
    let uri = fixture.am.registrationURI("ann")
    await #expect(throws: StateStoreError.self) { try await enroll(uri, "first", at: CrashingRegistry(fixture.vault)) }
    await #expect(throws: MailboxError.registeredWith("first")) { try await enroll(uri, "second") }
    for mailbox in ["first", nil] as [String?] {
      await #expect {
        try await enroll(uri, mailbox)
      } throws: {
        if case TokenServerError.outcomeUnknown = $0 { true } else { false }
      }
    }
    #expect(try await enroll(fixture.am.registrationURI("ann"), "second").delivery?.mailbox == "second")
  }
}
