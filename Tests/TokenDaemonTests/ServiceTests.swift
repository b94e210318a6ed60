// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import ControlProtocol
import FrontPanel
import MobileAuth
import SQLite
import Secrets
import ServerBackends
import Testing
import Vault

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct ServiceTests {
  @Test("A lost account is shown until an account is enrolled, even if other accounts are usable")
  func lossLasts() async throws {
    let fixture = try ServiceFixture()
    for name in ["mail", "shop"] { try await fixture.enroll(name) }
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await fixture.until(.idle(pending: 0))
    // The event that the handler reports after the last wrong PIN.
    try fixture.vault.wipe(account: AccountID("mail"), AuditEntry(.wiped, wallClockMilliseconds: 0))
    fixture.events.yield(.accountLost(AccountID("mail")))
    fixture.events.yield(.rosterChanged)
    try await fixture.until(.mustEnroll)
    // An enrollment that was not finished changes nothing.
    let shop = try fixture.vault.account(AccountID("shop"))
    try fixture.vault.put(
      AccountRecord(
        id: AccountID("mail"), server: shop.server, profile: "mail", stage: .enrolling, enrollment: EnrollmentID("2"),
        secrets: shop.secrets), nil)
    fixture.service.reload()
    try await Task.sleep(for: .milliseconds(300))
    #expect(await fixture.board.panel.showing == .mustEnroll)
    #expect(try await fixture.answer(.status, as: ServiceStatus.self).lost == ["mail"])
    try await fixture.enroll("mail2")
    fixture.service.reload()
    try await fixture.until(.idle(pending: 0))
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  /// A kind of server whose client cannot be made.
  private struct ClientlessBackend: ServerBackend {
    static let kind = "clientless"
    static let displayName = "clientless"
    static let uriPrefixes = ["clientless:"]

    init(_ context: BackendContext) {}
    static func recognizes(_ uri: String) -> Bool { false }
    static func form(of uri: String) throws -> EnrollmentForm { EnrollmentForm() }
    func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord { throw CancellationError() }

    func client(
      for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
    ) throws -> (any TokenServerClient)? {
      throw StateStoreError.io(call: "read", reason: "a test")
    }
  }

  @Test("An answer of unknown outcome is kept while its server's client cannot be made", arguments: [false, true])
  func answerToAServerWithoutAClient(isDamaged: Bool) async throws {
    let fixture = try ServiceFixture(kinds: Backends.kinds + [ClientlessBackend.self], panel: ScriptedPanel())
    let server = TokenServerRecord(
      id: TokenServerID("clientless"), kind: ClientlessBackend.kind, url: "clientless:",
      secrets: SecretBytes(copying: []))
    try fixture.vault.put(server)
    let account = AccountRecord(
      id: AccountID("ann"), server: server.id, profile: "ann", stage: .active, secrets: SecretBytes(copying: []))
    try fixture.vault.put(account)
    let intent = AnswerIntent(
      transaction: try #require(TransactionID("11111111-1111-4111-8111-111111111111")), server: server.id,
      account: account.id, idempotencyKey: "mine", decision: .accept)
    try fixture.vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 0))
    if isDamaged { try execute("UPDATE accounts SET box = x''", in: fixture) }
    let running = Task { _ = try? await fixture.service.run() }
    try await eventually("the handler waits") { fixture.handlerWaits }
    #expect(try fixture.vault.unresolvedIntents() == [intent])
    running.cancel()
    try await running.finished()
  }

  private func execute(_ sql: String, in fixture: ServiceFixture) throws {
    let connection = try Connection(path: "\(fixture.path)/vault.sqlite3")
    try connection.execute(sql)
  }

  /// Fails if one read that fails ends all answers until an account changes.
  @Test("A round that cannot read the vault begins again after a pause, or when the accounts change")
  func unreadableVault() async throws {
    let clock = ManualClock()
    let fixture = try ServiceFixture(panel: ScriptedPanel(), clock: clock)
    try await fixture.enroll("mail")
    let running = Task { _ = try? await fixture.service.run() }
    for isReloaded in [false, true] {
      try await eventually("the handler waits") { fixture.handlerWaits }
      try execute("ALTER TABLE accounts RENAME TO hidden", in: fixture)
      fixture.service.reload()
      try await eventually("a pause after the error") {
        fixture.service.handlerState == .failed && clock.untilNextWakes == .seconds(30)
      }
      #expect(fixture.panel.shown.last == .seeLog)
      try execute("ALTER TABLE hidden RENAME TO accounts", in: fixture)
      if isReloaded { fixture.service.reload() } else { clock.advance(by: .seconds(31)) }
    }
    try await eventually("the handler waits again") { fixture.handlerWaits }
    running.cancel()
    try await running.finished()
  }

  /// The times are those of token servers. Fails if one of them ends the program.
  @Test("The time of a connection is stored if it is a minute later than the stored one") func connectionTimes()
    async throws
  {
    let fixture = try ServiceFixture()
    try await fixture.enroll("mail")
    let server = try #require(try fixture.vault.servers().first).id
    for (time, stored) in [(.min, 0), (1_000, 1_000), (1_059, 1_000), (1_060, 1_060), (.max, 1_060), (.min, 1_060)]
      as [(Int64, Int64)]
    {
      fixture.vault.noteConnection(at: time, with: server)
      #expect(try fixture.vault.latestKnownTime(of: server) == stored, "after \(time)")
    }
  }

  @Test("A correct PIN clears the count of wrong PINs") func rightPINClearsTheCount() async throws {
    let fixture = try ServiceFixture()
    try await fixture.enroll("mail")
    fixture.service.note(FailureCounts(max: 3, previous: 2), of: AccountID("mail"))
    fixture.service.noteRightPIN(of: AccountID("mail"))
    let pins = try await fixture.answer(.status, as: ServiceStatus.self).pins
    #expect(pins?.map(\.remainingFailureCount) == [3])
  }

  @Test("A press without a request, or before the guard time, is reported as ignored") func ignoredPresses()
    async throws
  {
    let fixture = try ServiceFixture()
    let running = Task { await fixture.board.panel.run() }
    let hold = ControlRequest.simulate(.hold(milliseconds: 10))
    #expect(try await fixture.answer(hold, as: Done.self).ignored == "nothing is shown")
    #expect(try await fixture.answer(.simulate(.doublePress), as: Done.self).ignored == "nothing is shown")
    let keys = ControlRequest.simulate(.keys(["1"]))
    #expect(try await fixture.answer(keys, as: Done.self).ignored == "nothing is shown")
    let status = try await fixture.answer(.status, as: ServiceStatus.self)
    #expect(status.panel?.request == nil && status.panel?.pressCounts == false)
    #expect(status.panel?.reason == "nothing is shown")
    running.cancel()
    try await running.finished()
  }

  @Test("Keys of an unplugged keypad and the button of an unplugged chip have no effect") func unplugged()
    async throws
  {
    let fixture = try ServiceFixture()
    let running = Task { await fixture.board.panel.run() }
    let keys = ControlRequest.simulate(.keys(["unplug", "1", "plug-in"]))
    #expect(try await fixture.answer(keys, as: Done.self).ignored == "the keypad is unplugged")
    _ = try await fixture.answer(.simulate(.chip(isConnected: false)), as: Done.self)
    for input in [SimulatedInput.hold(milliseconds: 10), .doublePress, .notMe] {
      let error = await #expect(throws: CommandError.self) {
        try await fixture.answer(.simulate(input), as: Done.self)
      }
      #expect(error?.description == "the chip with the button is unplugged")
    }
    running.cancel()
    try await running.finished()
  }

  @Test(
    "The simulated keypad has the keys that users are shown",
    arguments: SimulatedInput.keyNames.replacing("0 to 9", with: "0, 9").split(separator: ", ").map(String.init))
  func keyNames(name: String) { #expect(SimulatedKeypad.Action(name) != nil) }

  /// The command checks options too, but only in the daemon's program.
  @Test(
    "The service refuses options that the kind of server does not accept",
    arguments: [("--ask-pin is for", true, nil), ("--mailbox is for", false, "topic")] as [(String, Bool, String?)])
  func impossibleOptions(reason: String, asksPIN: Bool, mailbox: String?) async throws {
    let fixture = try ServiceFixture()
    var options = EnrollmentOptions(
      uri: "approvaltoken://activate?server=https%3A%2F%2F127.0.0.1%3A1&code=1234567890128")
    options.asksPIN = asksPIN
    options.mailbox = mailbox
    let request = ControlRequest.enroll(options)
    await #expect {
      try await fixture.handler.answer(request) { _ in }
    } throws: {
      ($0 as? CommandError)?.code == .usage && "\($0)".hasPrefix(reason)
    }
  }

  /// The command checks the name too, but another client of the socket may not.
  @Test(
    "The service refuses an enrollment with an invalid account name", arguments: ["", "a b", "a\n"])
  func impossibleName(name: String) async throws {
    let fixture = try ServiceFixture()
    let uris = [
      "approvaltoken://activate?server=https%3A%2F%2F127.0.0.1%3A1&code=1234567890128",
      "otpauth://totp/E:a?secret=GEZDGNBVGY3TQOJQ&issuer=E",
    ]
    for uri in uris {
      var options = EnrollmentOptions(uri: uri)
      options.name = name
      let request = ControlRequest.enroll(options)
      await #expect {
        try await fixture.handler.answer(request) { _ in }
      } throws: {
        let error = CommandError(explaining: $0)
        return error?.code == .usage && error?.description == "a name has 1 to 64 bytes without blanks"
      }
    }
  }

  /// The accounts would lose their locks: which commands an account has follows from its server's kind.
  @Test("A server cannot take the place of a server of another kind") func replacedServer() async throws {
    let fixture = try ServiceFixture()
    try await fixture.enroll("mail")
    let options = EnrollmentOptions(uri: "approvaltoken://activate?server=https%3A%2F%2Foath&code=1234567890128")
    await #expect(throws: TokenServerError.alreadyEnrolled("oath is known as a token server of another kind")) {
      try await fixture.handler.answer(.enroll(options)) { _ in }
    }
    #expect(try fixture.vault.servers().map(\.kind) == ["oath"])
  }

  /// Fails if the record of a server that was not reached blocks its name until a factory reset.
  @Test("A server that an enrollment which failed has left gives way to one of another kind")
  func leftoverServer() async throws {
    let fixture = try ServiceFixture()
    let options = EnrollmentOptions(uri: "approvaltoken://activate?server=https%3A%2F%2Foath&code=1234567890128")
    await #expect(throws: TokenServerError.self) { try await fixture.handler.answer(.enroll(options)) { _ in } }
    #expect(try fixture.vault.servers().map(\.kind) == ["reference"])
    try await fixture.enroll("mail")
    #expect(try fixture.vault.servers().map(\.kind) == ["oath"])
  }

  /// The policies are `[]`. Without a message, the command would end with another exit code.
  @Test("Malformed policies in a URI for one-time passwords are an error with a message")
  func malformedPolicies() async throws {
    let fixture = try ServiceFixture()
    let options = EnrollmentOptions(
      uri: "otpauth://totp/E:a?secret=GEZDGNBVGY3TQOJQ&issuer=E&policies=W10")
    await #expect {
      try await fixture.handler.answer(.enroll(options)) { _ in }
    } throws: {
      CommandError(explaining: $0)?.code == .badData
    }
  }

  /// A hold without the profile's duration takes 6.2 s. No upper bound: a busy machine may take longer.
  @Test("\"Not me\" holds the simulated button for the duration of the board profile")
  func notMeHold() async throws {
    let fixture = try ServiceFixture(reportHold: .seconds(8))
    let running = Task { await fixture.board.panel.run() }
    let began = ContinuousClock.now
    #expect(try await fixture.answer(.simulate(.notMe), as: Done.self).ignored == "nothing is shown")
    let held = ContinuousClock.now - began
    #expect(held >= .milliseconds(8200), "\(held)")
    running.cancel()
    try await running.finished()
  }

  @Test(
    "Texts name the duration of the hold from the board profile",
    arguments: [
      (Duration.seconds(6), "6 seconds"), (.milliseconds(4_500), "4.5 seconds"), (.seconds(9), "9 seconds"),
    ])
  func holdInWords(hold: Duration, words: String) { #expect(hold.inSeconds == words) }
}
