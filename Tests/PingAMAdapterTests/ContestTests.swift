// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import MobileAuth
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

/// A message arrives while its account's enrollment completes.
@Suite(.timeLimit(.minutes(5))) struct `An account that two change at once` {
  private let world: AMWorld
  private let trust = ServerTrust()
  private let ann = AccountID("ann")

  init() throws { world = try AMWorld() }

  private func stages() throws -> [EnrolmentStage] { try world.vault.accounts().map(\.stage) }

  /// The login page sends ann's first message at the most inconvenient moment.
  private func registry(after changes: Int = 0) -> ContestedRegistry {
    ContestedRegistry(world.vault, after: changes) { [world] in
      #expect(world.am.finishRegistration(of: "ann") != nil)
      try world.bring()
    }
  }

  /// A power loss directly after AM has accepted ann's registration.
  private func unconfirmed() async throws -> String {
    let uri = world.am.registrationURI("ann")
    await #expect(throws: CustodyFault.self) {
      try await world.enrolment(registry: CutRegistry(world.vault)).enrol(uri, name: nil, trust: trust)
    }
    #expect(try stages() == [.enrolling])
    return uri
  }

  @Test(arguments: [false, true])
  func `Is not given up when its first message comes just then`(isReplacement: Bool) async throws {
    if isReplacement {
      _ = try await world.enrolment().enrol(world.am.registrationURI("ann"), name: nil, trust: trust)
      try world.vault.dropKeys(of: ann, AuditEntry(.disenrolled, wallClockMilliseconds: 0))
      // AM has deleted that one.
      world.timekeeper.advance(by: .seconds(121))
    }
    world.weather.withLock { $0 = [.sentTwice] }
    let uri = world.am.registrationURI("ann")
    let registry = registry(after: isReplacement ? 1 : 0)
    let account = try await world.enrolment(registry: registry).enrol(uri, name: nil, trust: trust)
    #expect(account.id == ann && account.stage == .active)
    #expect(try stages() == [.active])
    #expect(try world.vault.auditLines(newest: 1).map(\.entry.kind) == [.enrolled])
    #expect(try await world.server().pendingRequests().map(\.account) == [ann])
  }

  @Test func `Is enrolled once when its first message arrives before AM's answer is stored`() async throws {
    let uri = world.am.registrationURI("ann")
    let account = try await world.enrolment(registry: registry()).enrol(uri, name: nil, trust: trust)
    #expect(account.stage == .active)
    #expect(try world.vault.auditLines(newest: 9).map(\.entry.kind) == [.enrolled])
    #expect(try await world.server().pendingRequests().count == 1)
  }

  @Test func `Is not put back by its URI when its first message comes just then`() async throws {
    let uri = try await unconfirmed()
    await #expect(throws: TokenServerFault.alreadyEnrolled("it is the account \"ann\"")) {
      try await world.enrolment(registry: registry()).enrol(uri, name: nil, trust: trust)
    }
    #expect(try stages() == [.active])
    #expect(try await world.server().pendingRequests().count == 1)
  }

  @Test func `Is not there again when it was removed while its first message was read`() async throws {
    _ = try await unconfirmed()
    #expect(world.am.finishRegistration(of: "ann") != nil)
    let push = try #require(world.am.send("ann"))
    let registry = ContestedRegistry(world.vault) { [world, ann] in
      try world.vault.wipe(account: ann, AuditEntry(.removed, wallClockMilliseconds: 0))
    }
    let ingress = PushIngress(registry: registry, shelf: world.vault, timekeeper: world.timekeeper) { _ in }
    #expect(throws: PushIngress.Refusal.unknownMechanism) { try ingress.accept(push.envelope) }
    #expect(try stages().isEmpty)
  }

  @Test func `Keeps changes made while its new mailbox was registered at AM`() async throws {
    let account = try await world.enrolled()
    try world.vault.put(try PingAM.wanting(mailbox: "new", account), nil)
    let registry = ContestedRegistry(world.vault) { [world, ann] in
      try world.vault.put(try PingAM.with(pinLength: 5, try world.vault.account(ann)), nil)
    }
    try await MailboxRefresh(
      client: PingAMClient(courier: world.courier), ingress: world.ingress, registry: registry, server: account.server,
      deviceName: "desk token", timekeeper: world.timekeeper, isLocked: { _ in false }, report: { _ in }
    ).run()
    let kept = try world.vault.account(ann)
    #expect(try PingAM.mailbox(of: kept) == "new" && PingAM.pinLength(of: kept) == 5)
  }
}
