// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import MobileAuth
import Testing
import Vault

@testable import ApprovalToken

@Suite(.timeLimit(.minutes(5))) struct ServiceTests {
  @Test("A lost account is shown until an account is enrolled, even if other accounts are usable")
  func lossLasts() async throws {
    let fixture = try ServiceFixture()
    for name in ["mail", "shop"] { try await fixture.enroll(name) }
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    #expect(try await fixture.until(.idle(pending: 0)))
    // The event that the handler reports after the last wrong PIN.
    try fixture.vault.wipe(account: AccountID("mail"), AuditEntry(.wiped, wallClockMilliseconds: 0))
    fixture.events.yield(.accountLost(AccountID("mail")))
    fixture.events.yield(.rosterChanged)
    #expect(try await fixture.until(.mustEnroll))
    fixture.service.reload()
    try await Task.sleep(for: .milliseconds(300))
    #expect(await fixture.board.panel.showing == .mustEnroll)
    #expect(try await fixture.answer(ControlCall(request: .status), as: ServiceStatus.self).lost == ["mail"])
    try await fixture.enroll("mail2")
    fixture.service.reload()
    #expect(try await fixture.until(.idle(pending: 0)))
    for task in running { task.cancel() }
    for task in running { await task.value }
  }

  @Test("A correct PIN clears the count of wrong PINs") func rightPINClearsTheCount() async throws {
    let fixture = try ServiceFixture()
    try await fixture.enroll("mail")
    fixture.service.note(FailureCounts(max: 3, previous: 2), of: AccountID("mail"))
    fixture.service.noteRightPIN(of: AccountID("mail"))
    let pins = try await fixture.answer(ControlCall(request: .status), as: ServiceStatus.self).pins
    #expect(pins?.map(\.remainingFailureCount) == [3])
  }

  @Test("A press without a request, or before the guard time, is reported as ignored") func ignoredPresses()
    async throws
  {
    let fixture = try ServiceFixture()
    let running = Task { await fixture.board.panel.run() }
    let hold = ControlCall(request: .hold, milliseconds: 10)
    #expect(try await fixture.answer(hold, as: Done.self).ignored == "nothing is shown")
    #expect(try await fixture.answer(ControlCall(request: .double), as: Done.self).ignored == "nothing is shown")
    let keys = ControlCall(request: .keys, keys: ["1"])
    #expect(try await fixture.answer(keys, as: Done.self).ignored == "nothing is shown")
    let status = try await fixture.answer(ControlCall(request: .status), as: ServiceStatus.self)
    #expect(status.panel?.request == nil && status.panel?.pressCounts == false)
    #expect(status.panel?.reason == "nothing is shown")
    running.cancel()
    await running.value
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
      await #expect {
        try await fixture.handler.answer(ControlCall(request: .enroll, uri: uri, account: name)) { _ in }
      } throws: {
        ($0 as? CommandError)?.description == "a name has 1 to 64 bytes without blanks"
      }
    }
  }

  /// The accounts would lose their locks: which commands an account has follows from its server's kind.
  @Test("A server cannot take the place of a server of another kind") func replacedServer() async throws {
    let fixture = try ServiceFixture()
    try await fixture.enroll("mail")
    let call = ControlCall(
      request: .enroll, uri: "approvaltoken://activate?server=https%3A%2F%2Foath&code=1234567890128")
    await #expect(throws: TokenServerError.alreadyEnrolled("oath is known as a token server of another kind")) {
      try await fixture.handler.answer(call) { _ in }
    }
    #expect(try fixture.vault.servers().map(\.kind) == ["oath"])
  }

  /// The policies are `[]`. Without a message, the command would end with another exit code.
  @Test("Malformed policies in a URI for one-time passwords are an error with a message")
  func malformedPolicies() async throws {
    let fixture = try ServiceFixture()
    let call = ControlCall(
      request: .enroll, uri: "otpauth://totp/E:a?secret=GEZDGNBVGY3TQOJQ&issuer=E&policies=W10")
    await #expect {
      try await fixture.handler.answer(call) { _ in }
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
    #expect(try await fixture.answer(ControlCall(request: .notMe), as: Done.self).ignored == "nothing is shown")
    let held = ContinuousClock.now - began
    #expect(held >= .milliseconds(8200), "\(held)")
    running.cancel()
    await running.value
  }

  @Test(
    "Texts name the duration of the hold from the board profile",
    arguments: [
      (Duration.seconds(6), "6 seconds"), (.milliseconds(4_500), "4.5 seconds"), (.seconds(9), "9 seconds"),
    ])
  func holdInWords(hold: Duration, words: String) { #expect(hold.inSeconds == words) }
}
