// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite
import Secrets
import Testing
import Vault

@Suite(.timeLimit(.minutes(5))) struct `The custodian` {
  private let playground: Playground
  private let vault: Vault

  init() throws {
    playground = try Playground(in: "/dev/shm")
    vault = try playground.vault()
    try vault.put(server(acme))
    try vault.put(server(umbrella, url: "https://other.example"))
    try vault.put(account(alice), entry(.enrolled, alice))
  }

  @Test func `Gives an account back as it was put`() throws {
    let kept = try playground.vault().account(alice)
    #expect(kept.id == alice)
    #expect(kept.server == acme)
    #expect(kept.profile == "profile of alice")
    #expect(kept.stage == .active)
    #expect(SecretBytes.constantTimeEqual(kept.secrets, secrets("account key")))
    #expect(try vault.servers().map(\.url) == ["https://tokens.example", "https://other.example"])
    let summary = try #require(vault.accountSummaries().first)
    #expect(summary.id == alice)
    #expect(summary.server == acme)
    #expect(summary.url == "https://tokens.example")
    #expect(summary.profile == "profile of alice")
    #expect(summary.stage == .active)
  }

  @Test func `Lists accounts without decrypting`() throws {
    try playground.raw { try $0.execute("UPDATE accounts SET box = x''; UPDATE servers SET box = x''") }
    #expect(try vault.accountSummaries().map(\.id) == [alice])
  }

  @Test func `Does not let a second token server take over an account's name`() throws {
    #expect(throws: CustodyFault.unknown("account alice at token server umbrella")) {
      try vault.put(account(alice, at: umbrella), entry(.enrolled, alice))
    }
    #expect(try vault.account(alice).server == acme)
    #expect(try vault.auditLines(newest: 9).count == 1)
  }

  @Test func `Knows neither accounts nor servers that are not there`() throws {
    let nobody = AccountID("nobody")
    let nowhere = TokenServerID("nowhere")
    let unknown: [(CustodyFault, () throws -> Void)] = [
      (.unknown("account nobody"), { _ = try vault.account(nobody) }),
      (.unknown("account nobody"), { try vault.dropKeys(of: nobody, entry(.disenrolled)) }),
      (.unknown("account nobody"), { try vault.wipe(account: nobody, entry(.wiped)) }),
      (.unknown("token server nowhere"), { try vault.wipe(server: nowhere, entry(.wiped)) }),
      (.unknown("token server nowhere"), { try vault.put(account(bob, at: nowhere), entry(.enrolled)) }),
      (.unknown("account nobody at token server acme"), { try vault.journal(intent(login, nobody), entry(.decided)) }),
      (
        .unknown("account alice at token server umbrella"),
        { try vault.journal(intent(login, alice, at: umbrella), entry(.decided)) }
      ),
    ]
    for (fault, body) in unknown { #expect(throws: fault, performing: body) }
    #expect(try vault.auditLines(newest: 9).count == 1)
    #expect(try vault.unsettledIntents() == [])
  }

  @Test(arguments: [.accept, .deny(.declined), .deny(.cancelled), .deny(.notMe)] as [Decision])
  func `Keeps an answer until it is settled`(decision: Decision) throws {
    var answer = intent(login, alice)
    answer.decision = decision
    try vault.journal(answer, entry(.decided, alice))
    let later = try playground.vault()
    #expect(try later.unsettledIntents() == [answer])
    try later.settle(login, entry(.settled, alice))
    #expect(try vault.unsettledIntents() == [])
    #expect(try vault.auditLines(newest: 9).map(\.entry.kind) == [.enrolled, .decided, .settled])
  }

  @Test func `Takes a new answer to the same request in place of the old`() throws {
    try vault.journal(intent(login, alice, key: "before the restart"), entry(.decided))
    try vault.journal(intent(payment, alice), entry(.decided))
    try vault.journal(intent(login, alice, key: "after it"), entry(.decided))
    #expect(try vault.unsettledIntents() == [intent(login, alice, key: "after it"), intent(payment, alice)])
  }

  @Test func `Records an end whose answer is not known any more`() throws {
    try vault.settle(payment, entry(.settled, alice, "wiped meanwhile"))
    #expect(try vault.auditLines(newest: 1).map(\.entry) == [entry(.settled, alice, "wiped meanwhile")])
  }

  @Test func `Drops keys but neither name nor open questions`() throws {
    try vault.journal(intent(login, alice), entry(.decided))
    try vault.dropKeys(of: alice, entry(.disenrolled, alice))
    let kept = try vault.account(alice)
    #expect(kept.stage == .mustEnrolAgain)
    #expect(kept.secrets.count == 0)
    #expect(kept.profile == "profile of alice")
    #expect(try vault.unsettledIntents() == [intent(login, alice)])
    try vault.put(account(alice, "new key"), entry(.enrolled, alice))
    #expect(SecretBytes.constantTimeEqual(try vault.account(alice).secrets, secrets("new key")))
    #expect(try vault.unsettledIntents() == [intent(login, alice)])
  }

  @Test func `Wipes one account and no other`() throws {
    try vault.put(account(bob))
    try vault.journal(intent(login, alice), entry(.decided))
    try vault.journal(intent(payment, bob), entry(.decided))
    try vault.wipe(account: alice, entry(.wiped, alice))
    #expect(try vault.accounts().map(\.id) == [bob])
    #expect(try vault.unsettledIntents() == [intent(payment, bob)])
    #expect(try vault.servers().count == 2)
    // The same account ID can be enrolled again later.
    try vault.wipe(ifThere: alice, entry(.removed, alice))
    #expect(try vault.auditLines(newest: 1).map(\.entry) == [entry(.wiped, alice)])
  }

  @Test func `Wipes one token server and no other`() throws {
    try vault.put(account(bob, at: umbrella))
    try vault.journal(intent(login, alice), entry(.decided))
    try vault.journal(intent(payment, bob, at: umbrella), entry(.decided))
    try vault.wipe(server: acme, entry(.removed))
    #expect(try vault.servers().map(\.id) == [umbrella])
    #expect(try vault.accounts().map(\.id) == [bob])
    #expect(try vault.unsettledIntents() == [intent(payment, bob, at: umbrella)])
  }

  @Test func `Moves the latest known time of a server forward only`() throws {
    #expect(try vault.latestKnownTime(of: acme) == 0)
    for (noted, known) in [
      (1_760_000_000, 1_760_000_000), (1_759_999_999, 1_760_000_000), (0, 1_760_000_000),
      (-1, 1_760_000_000), (1_760_000_001, 1_760_000_001), (253_402_300_800, 1_760_000_001), (.max, 1_760_000_001),
    ] as [(Int64, Int64)] {
      try vault.note(time: noted, of: acme)
      #expect(try playground.vault().latestKnownTime(of: acme) == known)
    }
  }

  @Test("The time that one server reported does not apply to others, and can be deleted")
  func timesAreKeptPerServer() throws {
    try vault.note(time: 253_402_300_799, of: acme)
    #expect(try vault.latestKnownTime(of: umbrella) == 0)
    #expect(throws: CustodyFault.self) { try vault.note(time: 1, of: TokenServerID("nobody")) }
    try vault.forgetKnownTimes()
    #expect(try vault.latestKnownTime(of: acme) == 0)
  }
}
