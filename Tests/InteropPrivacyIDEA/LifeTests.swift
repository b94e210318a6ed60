// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// The life cycle of tokens, requests, clocks and servers.
  @Suite struct Life {
    @Test("No answer, or an answer by another token") func noAnswerOrAnAnswerByAnotherToken() async throws {
      try await withDesk { fixture, serial in
        let server = fixture.server
        try server.set("PushChallengeValidityTime", to: "3")
        let forgotten = try await fixture.login(with: serial)
        #expect(
          try await fixture.ending(of: forgotten)
            == "ended at the token server before the end of its time; how is not known")
        #expect(try server.challengeStatus(forgotten.portal) == "pending")
        #expect(try server.finalize(serial, forgotten.portal) != "ACCEPT")
        try server.set("PushChallengeValidityTime", to: "120")

        // Two tokens of one user: the first answer counts.
        try server.addUser("carol")
        let other = try PushServerFixture(at: server)
        try await other.token.start()
        let (here, there) = (try server.makeToken(of: "carol"), try server.makeToken(of: "carol"))
        try await fixture.enroll(here.url, as: "carol")
        try await other.enroll(there.url, as: "carol")
        let mark = try other.token.log.mark
        let login = try await fixture.asked("carol") { try server.trigger(user: "carol") }
        let elsewhere = try await other.asked("carol", login.portal, from: mark)
        try await fixture.expect(.hold, on: login, toEndAs: "approved", seenAs: "accept", with: here.serial)
        #expect(try server.finalize(user: "carol", login.portal) == "ACCEPT")
        #expect(
          try await other.ending(of: elsewhere)
            == "ended at the token server before the end of its time; how is not known")
        try await other.end()
      }
    }

    @Test("Enrolled again, disabled, deleted") func enrolledAgainDisabledDeleted() async throws {
      try await withDesk { fixture, serial in
        let server = fixture.server
        let former = try await fixture.token.accounts()
        try await fixture.enroll(server.makeToken(again: serial).url)
        #expect(try await fixture.token.accounts() == former, "name and place stay")
        let login = try await fixture.login(with: serial)
        try await fixture.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)

        // The server accepts the answer but refuses the login.
        let refused = try await fixture.login(with: serial)
        try server.disableToken(serial)
        try await fixture.expect(.hold, on: refused, toEndAs: "approved", seenAs: "accept", with: serial)
        #expect(try server.finalize(serial, refused.portal) != "ACCEPT")

        let mark = try fixture.token.log.mark
        try server.deleteToken(serial)
        // After a minute of refusals.
        try await fixture.token.log.line(with: "disenrolled account desk", from: mark, within: .seconds(150))
        try await fixture.token.shows("must be enrolled (again)")
        #expect(try await fixture.token.accounts() == [.init(account: "desk", stage: "must-enroll-again")])
      }
    }

    @Test("A clock that is 90 s behind is corrected by the server's") func clockThatIs90SBehindIsCorrectedByTheServers()
      async throws
    {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let clock = try await wallClock(secondsBack: 90, in: folder)
      try await withDesk(launcher: ["env", "LD_PRELOAD=\(clock)"]) { fixture, serial in
        try await fixture.token.log.line(with: "clock and the token server's are ", "corrected")
        let login = try await fixture.login(with: serial)
        try await fixture.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
      }
    }

    @Test("Server and token restart while another server is off") func serverAndTokenRestartWhileAnotherServerIsOff()
      async throws
    {
      let (server, dead) = (try PushServer.shared.get(), try PushServer())
      try await withDesk(and: [dead]) { fixture, serial in
        try await fixture.enroll(dead.makeToken().url, as: "elsewhere")
        try dead.stop()
        let lost = "not connected to localhost:\(dead.port)"
        try await fixture.token.log.line(with: lost)
        var login = try await fixture.login(with: serial)
        try await fixture.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)

        // Between challenge and answer.
        login = try await fixture.login(with: serial)
        try server.stop()
        try await fixture.token.answer(login.token, with: .hold, from: login.mark)
        try await fixture.token.shows("outcome unknown, retrying")
        try server.start()
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(try server.challengeStatus(login.portal) == "accept")

        // While no request is open.
        var mark = try fixture.token.log.mark
        try server.stop()
        try await fixture.token.log.line(with: "not connected to localhost:\(server.port)", from: mark)
        try await fixture.token.shows("idle, not connected")
        mark = try fixture.token.log.mark
        try server.start()
        try await fixture.token.log.line(
          with: "] connected to localhost:\(server.port)", from: mark, within: .seconds(90))

        try await fixture.token.kill9()
        try await fixture.token.startConnected()
        login = try await fixture.login(with: serial)
        try await fixture.expect(
          .double, on: login, toEndAs: "denied", seenAs: "cancelled", finally: "REJECT", with: serial)
      }
    }

    @Test("A PIN required by the administrator, and no fingerprint")
    func pinRequiredByTheAdministratorAndNoFingerprint() async throws {
      let server = try PushServer.shared.get()
      let fixture = try PushServerFixture(at: server, settings: "pin_attempts = 2")
      try await fixture.token.start()
      func url(settingPendingMailbox unlock: String) throws -> (serial: String, url: String) {
        try server.policy("unlock", scope: "enrollment", ["push_app_force_unlock": unlock])
        defer { try? server.removePolicy("unlock") }
        return try server.makeToken()
      }
      let refused = try await fixture.token.enroll(try url(settingPendingMailbox: "biometric").url, name: "finger")
      #expect(refused.exit == .code(77) && refused.errors.contains("pin_for_biometric"))

      let (serial, url) = try url(settingPendingMailbox: "pin")
      let mark = try fixture.token.log.mark
      #expect(try await fixture.token.enroll(url, name: "desk", choosing: "135790").exit == .code(0))
      try await fixture.token.log.line(with: "] connected to", from: mark)
      // A hold alone does not approve; a wrong PIN costs an attempt.
      var login = try await fixture.login(with: serial)
      try await fixture.token.perform(.hold)
      try await fixture.token.type("246801")
      try await fixture.token.log.line(with: "pin-wrong", "1 of 2", from: login.mark)
      #expect(try server.challengeStatus(login.portal) == "pending")
      try await fixture.token.type("135790")
      #expect(try await fixture.ending(of: login).hasPrefix("approved"))
      #expect(try server.finalize(serial, login.portal) == "ACCEPT")

      let change = try fixture.token.begin("pin", "change", "desk")
      try await fixture.token.type("135790")
      try await fixture.token.choose("864201")
      try await change.outcome().succeeded()
      // The last wrong PIN removes this account and no other.
      login = try await fixture.login(with: serial)
      for guess in ["135790", "246801"] { try await fixture.token.type(guess) }
      #expect(try await fixture.ending(of: login).contains("too many wrong PINs"))
      #expect(try server.challengeStatus(login.portal) == "pending")
      #expect(try await fixture.token.accounts() == [])
      try await fixture.end()
    }

    @Test("A PIN chosen by the user alone, at enrollment or later") func pinChosenByTheUserAloneAtEnrollmentOrLater()
      async throws
    {
      let server = try PushServer.shared.get()
      let fixture = try PushServerFixture(at: server)
      try await fixture.token.start()
      func accept(_ serial: String, _ account: String, with pin: String) async throws {
        let login = try await fixture.login(with: serial, account: account)
        try await fixture.token.perform(.hold)
        try await fixture.token.type(pin)
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(try server.finalize(serial, login.portal) == "ACCEPT")
        let decided = try await fixture.token.audit(of: login.token).filter { $0.kind == "decided" }.map(\.detail)
        #expect(decided == ["accept by PIN"])
      }

      let first = try server.makeToken()
      let enrollment = try fixture.token.begin("enroll", first.url, "--name", "desk", "--ask-pin", "--json")
      try await fixture.token.choose("135790")
      try await enrollment.outcome().succeeded()
      try await accept(first.serial, "desk", with: "135790")

      let second = try server.makeToken()
      try await fixture.enroll(second.url, as: "later")
      let choice = try fixture.token.begin("pin", "change", "later")
      try await fixture.token.choose("864201")
      try await choice.outcome().succeeded()
      try await accept(second.serial, "later", with: "864201")
      try await fixture.end()
    }
  }
}
