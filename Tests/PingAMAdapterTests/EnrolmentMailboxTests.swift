// SPDX-License-Identifier: Apache-2.0
import Courier
import MobileAuth
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `Registering with a mailbox that somebody names` {
  private let world: AMWorld

  init() throws { world = try AMWorld() }

  @discardableResult
  private func enrol(_ uri: String, _ mailbox: String?, at registry: CutRegistry? = nil) async throws -> AccountRecord {
    try await world.enrolment(registry: registry, mailbox: mailbox).enrol(uri, name: nil, trust: ServerTrust())
  }

  @Test(arguments: [nil, "secret=MFRGGZDF&period=30"] as [String?]) func `Is registered at AM`(oath: String?)
    async throws
  {
    let account = try await enrol(world.am.registrationURI("ann", oath: oath), "desk/ann")
    #expect(try PingAM.mailbox(of: account) == "desk/ann")
    #expect(world.am.finishRegistration(of: "ann")?.deviceID == "desk/ann")
  }

  @Test(arguments: ["", "two words", "desk/+", "desk/#", "$share/desk", String(repeating: "x", count: 513)])
  func `Refuses what can be none`(mailbox: String) async throws {
    await #expect {
      try await enrol(world.am.registrationURI("ann"), mailbox)
    } throws: {
      if case MailboxRefusal.malformed = $0 { true } else { false }
    }
    #expect(try world.vault.accounts().isEmpty)
    #expect(world.requests.withLock { $0.isEmpty })
  }

  @Test(arguments: [false, true]) func `Refuses another account's, also one that is still to be its`(isWanted: Bool)
    async throws
  {
    let account = try await world.enrolled()
    var taken = try #require(try PingAM.mailbox(of: account))
    if isWanted {
      taken = "elsewhere"
      try world.vault.put(try PingAM.wanting(mailbox: taken, account))
    }
    await #expect(throws: MailboxRefusal.taken(taken, by: account.id)) {
      try await enrol(world.am.registrationURI("bob"), taken)
    }
    #expect(try world.vault.accounts().count == 1)
  }

  /// AM has accepted the registration, and a power loss prevented the token from storing its response.
  @Test func `Is unchanged with the same code, and may change with a new code`() async throws {
    let uri = world.am.registrationURI("ann")
    await #expect(throws: CustodyFault.self) { try await enrol(uri, "first", at: CutRegistry(world.vault)) }
    await #expect(throws: MailboxRefusal.registeredWith("first")) { try await enrol(uri, "second") }
    for mailbox in ["first", nil] as [String?] {
      await #expect {
        try await enrol(uri, mailbox)
      } throws: {
        if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
      }
    }
    #expect(try PingAM.mailbox(of: try await enrol(world.am.registrationURI("ann"), "second")) == "second")
  }
}
