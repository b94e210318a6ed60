// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite
import Secrets
import Testing
import Vault

@Suite("The state store", .timeLimit(.minutes(5))) struct StateStoreTests {
  private let fixture: VaultFixture
  private let vault: Vault

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    try vault.put(server(acme))
    try vault.put(server(umbrella, url: "https://other.example"))
    try vault.put(account(alice), entry(.enrolled, alice))
  }

  @Test("Gives an account back as it was put") func givesAnAccountBackAsItWasPut() throws {
    let kept = try fixture.vault().account(alice)
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

  @Test("Lists accounts without decrypting") func listsAccountsWithoutDecrypting() throws {
    try fixture.raw { try $0.execute("UPDATE accounts SET box = x''; UPDATE servers SET box = x''") }
    #expect(try vault.accountSummaries().map(\.id) == [alice])
  }

  @Test("Does not let a second token server take over an account's name")
  func doesNotLetASecondTokenServerTakeOverAnAccountsName() throws {
    #expect(throws: StateStoreError.conflict(.account(alice), .atAnotherServer)) {
      try vault.put(account(alice, at: umbrella), entry(.enrolled, alice))
    }
    #expect(try vault.account(alice).server == acme)
    #expect(try vault.auditLines(newest: 9).count == 1)
  }

  @Test("Knows neither accounts nor servers that are not there") func knowsNeitherAccountsNorServersThatAreNotThere()
    throws
  {
    let nobody = AccountID("nobody")
    let nowhere = TokenServerID("nowhere")
    let unknown: [(StateStoreError, () throws -> Void)] = [
      (.notFound(.account(nobody)), { _ = try vault.account(nobody) }),
      (.notFound(.account(nobody)), { try vault.dropKeys(of: nobody, entry(.disenrolled)) }),
      (.notFound(.account(nobody)), { try vault.wipe(account: nobody, entry(.wiped)) }),
      (.notFound(.server(nowhere)), { try vault.wipe(server: nowhere, entry(.wiped)) }),
      (.notFound(.server(nowhere)), { try vault.put(account(bob, at: nowhere), entry(.enrolled)) }),
      (.notFound(.accountAt(nobody, acme)), { try vault.journal(intent(login, nobody), entry(.decided)) }),
      (
        .notFound(.accountAt(alice, umbrella)),
        { try vault.journal(intent(login, alice, at: umbrella), entry(.decided)) }
      ),
    ]
    for (fault, body) in unknown { #expect(throws: fault, performing: body) }
    #expect(try vault.auditLines(newest: 9).count == 1)
    #expect(try vault.unresolvedIntents() == [])
  }

  @Test(
    "Keeps an answer until it is settled",
    arguments: [.accept, .deny(.declined), .deny(.canceled), .deny(.notMe)] as [Decision])
  func keepsAnAnswerUntilItIsSettled(decision: Decision) throws {
    var answer = intent(login, alice)
    answer.decision = decision
    try vault.journal(answer, entry(.decided, alice))
    let later = try fixture.vault()
    #expect(try later.unresolvedIntents() == [answer])
    try later.resolveIntent(login, entry(.settled, alice))
    #expect(try vault.unresolvedIntents() == [])
    #expect(try vault.auditLines(newest: 9).map(\.entry.kind) == [.enrolled, .decided, .settled])
  }

  @Test("Takes a new answer to the same request in place of the old")
  func takesANewAnswerToTheSameRequestInPlaceOfTheOld() throws {
    try vault.journal(intent(login, alice, key: "before the restart"), entry(.decided))
    try vault.journal(intent(payment, alice), entry(.decided))
    try vault.journal(intent(login, alice, key: "after it"), entry(.decided))
    #expect(try vault.unresolvedIntents() == [intent(login, alice, key: "after it"), intent(payment, alice)])
  }

  @Test("Records an end whose answer is not known any more") func recordsAnEndWhoseAnswerIsNotKnownAnyMore() throws {
    try vault.resolveIntent(payment, entry(.settled, alice, "wiped meanwhile"))
    #expect(try vault.auditLines(newest: 1).map(\.entry) == [entry(.settled, alice, "wiped meanwhile")])
  }

  @Test("Drops keys but neither name nor open questions") func dropsKeysButNeitherNameNorOpenQuestions() throws {
    try vault.journal(intent(login, alice), entry(.decided))
    try vault.dropKeys(of: alice, entry(.disenrolled, alice))
    let kept = try vault.account(alice)
    #expect(kept.stage == .mustEnrollAgain)
    #expect(kept.stage.rawValue == "must-enrol-again" && kept.stage.text == "must-enroll-again")
    #expect(kept.secrets.count == 0)
    #expect(kept.profile == "profile of alice")
    #expect(try vault.unresolvedIntents() == [intent(login, alice)])
    try vault.put(account(alice, "new key"), entry(.enrolled, alice))
    #expect(SecretBytes.constantTimeEqual(try vault.account(alice).secrets, secrets("new key")))
    #expect(try vault.unresolvedIntents() == [intent(login, alice)])
  }

  @Test("What stays of an account without keys is kept with its PIN") func keepsTheRemainder() throws {
    var enrolled = account(alice, "key and PIN")
    enrolled.pin = PINMetadata(.server, length: 5)
    enrolled.allowedOrigins = ["https://shop.example"]
    try vault.put(enrolled)
    try vault.dropKeys(of: alice, if: nil, keeping: secrets("PIN"), entry(.disenrolled, alice))
    let kept = try vault.account(alice)
    #expect(kept.stage == .mustEnrollAgain && kept.pin == enrolled.pin && kept.profile == enrolled.profile)
    #expect(kept.enrollment == enrolled.enrollment && kept.allowedOrigins == enrolled.allowedOrigins)
    #expect(SecretBytes.constantTimeEqual(kept.secrets, secrets("PIN")))
  }

  @Test("Wipes one account and no other") func wipesOneAccountAndNoOther() throws {
    try vault.put(account(bob))
    try vault.journal(intent(login, alice), entry(.decided))
    try vault.journal(intent(payment, bob), entry(.decided))
    try vault.wipe(account: alice, entry(.wiped, alice))
    #expect(try vault.accounts().map(\.id) == [bob])
    #expect(try vault.unresolvedIntents() == [intent(payment, bob)])
    #expect(try vault.servers().count == 2)
    // The same account ID can be enrolled again later.
    try vault.wipe(ifThere: alice, entry(.removed, alice))
    #expect(try vault.auditLines(newest: 1).map(\.entry) == [entry(.wiped, alice)])
  }

  @Test("Wipes one token server and no other") func wipesOneTokenServerAndNoOther() throws {
    try vault.put(account(bob, at: umbrella))
    try vault.journal(intent(login, alice), entry(.decided))
    try vault.journal(intent(payment, bob, at: umbrella), entry(.decided))
    try vault.wipe(server: acme, entry(.removed))
    #expect(try vault.servers().map(\.id) == [umbrella])
    #expect(try vault.accounts().map(\.id) == [bob])
    #expect(try vault.unresolvedIntents() == [intent(payment, bob, at: umbrella)])
  }

  @Test("Moves the latest known time of a server forward only") func movesTheLatestKnownTimeOfAServerForwardOnly()
    throws
  {
    #expect(try vault.latestKnownTime(of: acme) == 0)
    for (noted, known) in [
      (1_760_000_000, 1_760_000_000), (1_759_999_999, 1_760_000_000), (0, 1_760_000_000),
      (-1, 1_760_000_000), (1_760_000_001, 1_760_000_001), (253_402_300_800, 1_760_000_001), (.max, 1_760_000_001),
    ] as [(Int64, Int64)] {
      try vault.note(time: noted, of: acme)
      #expect(try fixture.vault().latestKnownTime(of: acme) == known)
    }
  }

  @Test("The time that one server reported does not apply to others, and can be deleted")
  func timesAreKeptPerServer() throws {
    try vault.note(time: 253_402_300_799, of: acme)
    #expect(try vault.latestKnownTime(of: umbrella) == 0)
    #expect(throws: StateStoreError.self) { try vault.note(time: 1, of: TokenServerID("nobody")) }
    try vault.forgetKnownTimes()
    #expect(try vault.latestKnownTime(of: acme) == 0)
  }
}
