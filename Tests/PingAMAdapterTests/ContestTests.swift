// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

/// A message arrives while its account's enrollment completes.
@Suite("An account that two change at once", .timeLimit(.minutes(5))) struct ContestTests {
  private let fixture: PingAMFixture
  private let trust = ServerTrust()
  private let ann = AccountID("ann")

  init() throws { fixture = try PingAMFixture() }

  private func stages() throws -> [EnrollmentStage] { try fixture.vault.accounts().map(\.stage) }

  /// The login page sends ann's first message at the most inconvenient moment.
  private func registry(after changes: Int = 0) -> ContestedRegistry {
    ContestedRegistry(fixture.vault, after: changes) { [fixture] in
      #expect(fixture.am.finishRegistration(of: "ann") != nil)
      try fixture.deliver()
    }
  }

  /// A power loss directly after AM has accepted ann's registration.
  private func unconfirmed() async throws -> String {
    let uri = fixture.am.registrationURI("ann")
    await #expect(throws: StateStoreError.self) {
      try await fixture.enrollment(registry: CrashingRegistry(fixture.vault)).enroll(uri, name: nil, trust: trust)
    }
    #expect(try stages() == [.enrolling])
    return uri
  }

  @Test("Is not given up when its first message comes just then", arguments: [false, true])
  func isNotGivenUpWhenItsFirstMessageComesJustThen(isReplacement: Bool) async throws {
    if isReplacement {
      _ = try await fixture.enrollment().enroll(fixture.am.registrationURI("ann"), name: nil, trust: trust)
      try fixture.vault.dropKeys(of: ann, AuditEntry(.disenrolled, wallClockMilliseconds: 0))
      // AM has deleted that one.
      fixture.clock.advance(by: .seconds(121))
    }
    fixture.weather.withLock { $0 = [.sentTwice] }
    let uri = fixture.am.registrationURI("ann")
    let registry = registry(after: isReplacement ? 1 : 0)
    let account = try await fixture.enrollment(registry: registry).enroll(uri, name: nil, trust: trust)
    #expect(account.id == ann && account.stage == .active)
    #expect(try stages() == [.active])
    #expect(try fixture.vault.auditRows(newest: 1).compactMap(\.line?.entry.kind) == [.enrolled])
    #expect(try await fixture.server().pendingRequests().map(\.account) == [ann])
  }

  @Test("Is enrolled once when its first message arrives before AM's answer is stored")
  func isEnrolledOnceWhenItsFirstMessageArrivesBeforeAMsAnswerIsStored() async throws {
    let uri = fixture.am.registrationURI("ann")
    let account = try await fixture.enrollment(registry: registry()).enroll(uri, name: nil, trust: trust)
    #expect(account.stage == .active)
    #expect(try fixture.vault.auditRows(newest: 9).compactMap(\.line?.entry.kind) == [.enrolled])
    #expect(try await fixture.server().pendingRequests().count == 1)
  }

  @Test("Is not put back by its URI when its first message comes just then")
  func isNotPutBackByItsURIWhenItsFirstMessageComesJustThen() async throws {
    let uri = try await unconfirmed()
    await #expect(throws: TokenServerError.alreadyEnrolled("it is the account \"ann\"")) {
      try await fixture.enrollment(registry: registry()).enroll(uri, name: nil, trust: trust)
    }
    #expect(try stages() == [.active])
    #expect(try await fixture.server().pendingRequests().count == 1)
  }

  @Test("Is not there again when it was removed while its first message was read")
  func isNotThereAgainWhenItWasRemovedWhileItsFirstMessageWasRead() async throws {
    _ = try await unconfirmed()
    #expect(fixture.am.finishRegistration(of: "ann") != nil)
    let push = try #require(fixture.am.send("ann"))
    let registry = ContestedRegistry(fixture.vault) { [fixture, ann] in
      try fixture.vault.wipe(account: ann, AuditEntry(.removed, wallClockMilliseconds: 0))
    }
    let ingress = PushIngress(registry: registry, messageStore: fixture.vault, in: fixture.environment)
    #expect(throws: PushIngress.IngressError.unknownMechanism) { try ingress.accept(push.envelope) }
    #expect(try stages().isEmpty)
  }

  @Test("Keeps changes made while its new mailbox was registered at AM")
  func keepsChangesMadeWhileItsNewMailboxWasRegisteredAtAM() async throws {
    let account = try await fixture.enrolled()
    try fixture.vault.put(try account.requesting(mailbox: "new"), nil)
    let registry = ContestedRegistry(fixture.vault) { [fixture, ann] in
      var account = try fixture.vault.account(ann)
      account.pin = PINMetadata(.token, length: 5)
      try fixture.vault.put(account, nil)
    }
    try await MailboxRefresh(
      client: PingAMHTTPClient(http: fixture.http), ingress: fixture.ingress, registry: registry,
      server: account.server,
      deviceName: "desk token", environment: fixture.environment, isLocked: { _ in false }
    ).run()
    let kept = try fixture.vault.account(ann)
    #expect(kept.delivery == DeliveryAddress("new") && kept.pin?.length == 5)
  }
}
