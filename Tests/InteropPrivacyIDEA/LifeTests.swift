// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// The life cycle of tokens, requests, clocks and servers.
  @Suite struct Life {
    @Test func `No answer, or an answer by another token`() async throws {
      try await withDesk { scene, serial in
        let server = scene.server
        try server.set("PushChallengeValidityTime", to: "3")
        let forgotten = try await scene.login(with: serial)
        #expect(
          try await scene.ending(of: forgotten)
            == "ended at the token server before the end of its time; how is not known")
        #expect(try server.challengeStatus(forgotten.portal) == "pending")
        #expect(try server.finalise(serial, forgotten.portal) != "ACCEPT")
        try server.set("PushChallengeValidityTime", to: "120")

        // Two tokens of one user: the first answer counts.
        try server.addUser("carol")
        let other = try PushScene(at: server)
        try await other.token.start()
        let (here, there) = (try server.makeToken(of: "carol"), try server.makeToken(of: "carol"))
        try await scene.enrol(here.url, as: "carol")
        try await other.enrol(there.url, as: "carol")
        let mark = try other.token.log.mark
        let login = try await scene.asked("carol") { try server.trigger(user: "carol") }
        let elsewhere = try await other.asked("carol", login.portal, from: mark)
        try await scene.expect(.hold, on: login, toEndAs: "approved", seenAs: "accept", with: here.serial)
        #expect(try server.finalise(user: "carol", login.portal) == "ACCEPT")
        #expect(
          try await other.ending(of: elsewhere)
            == "ended at the token server before the end of its time; how is not known")
        try await other.end()
      }
    }

    @Test func `Enrolled again, disabled, deleted`() async throws {
      try await withDesk { scene, serial in
        let server = scene.server
        let former = try await scene.token.accounts()
        try await scene.enrol(server.makeToken(again: serial).url)
        #expect(try await scene.token.accounts() == former, "name and place stay")
        let login = try await scene.login(with: serial)
        try await scene.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)

        // The server accepts the answer but refuses the login.
        let refused = try await scene.login(with: serial)
        try server.disableToken(serial)
        try await scene.expect(.hold, on: refused, toEndAs: "approved", seenAs: "accept", with: serial)
        #expect(try server.finalise(serial, refused.portal) != "ACCEPT")

        let mark = try scene.token.log.mark
        try server.deleteToken(serial)
        try await scene.token.log.line(with: "disenrolled account desk", from: mark)
        try await scene.token.shows("must be enrolled (again)")
        #expect(try await scene.token.accounts() == [.init(account: "desk", stage: "must-enrol-again")])
      }
    }

    @Test func `A clock that is 90 s behind is corrected by the server's`() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let clock = try await wallClock(secondsBack: 90, in: folder)
      try await withDesk(launcher: ["env", "LD_PRELOAD=\(clock)"]) { scene, serial in
        try await scene.token.log.line(with: "clock and the token server's are ", "corrected")
        let login = try await scene.login(with: serial)
        try await scene.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
      }
    }

    @Test func `Server and token restart while another server is off`() async throws {
      let (server, dead) = (try PushServer.shared.get(), try PushServer())
      try await withDesk(and: [dead]) { scene, serial in
        try await scene.enrol(dead.makeToken().url, as: "elsewhere")
        try dead.stop()
        let lost = "not connected to localhost:\(dead.port)"
        try await scene.token.log.line(with: lost)
        var login = try await scene.login(with: serial)
        try await scene.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)

        // Between challenge and answer.
        login = try await scene.login(with: serial)
        try server.stop()
        try await scene.token.answer(login.token, with: .hold, from: login.mark)
        try await scene.token.shows("outcome unknown, retrying")
        try server.start()
        #expect(try await scene.ending(of: login).hasPrefix("approved"))
        #expect(try server.challengeStatus(login.portal) == "accept")

        // While no request is open.
        var mark = try scene.token.log.mark
        try server.stop()
        try await scene.token.log.line(with: "not connected to localhost:\(server.port)", from: mark)
        try await scene.token.shows("idle, not connected")
        mark = try scene.token.log.mark
        try server.start()
        try await scene.token.log.line(
          with: "] connected to localhost:\(server.port)", from: mark, within: .seconds(90))

        try await scene.token.kill9()
        try await scene.token.startConnected()
        login = try await scene.login(with: serial)
        try await scene.expect(
          .double, on: login, toEndAs: "denied", seenAs: "cancelled", finally: "REJECT", with: serial)
      }
    }

    @Test func `A PIN required by the administrator, and no fingerprint`() async throws {
      let server = try PushServer.shared.get()
      let scene = try PushScene(at: server, settings: "pin_attempts = 2")
      try await scene.token.start()
      func url(wanting unlock: String) throws -> (serial: String, url: String) {
        try server.policy("unlock", scope: "enrollment", ["push_app_force_unlock": unlock])
        defer { try? server.removePolicy("unlock") }
        return try server.makeToken()
      }
      let refused = try await scene.token.enrol(try url(wanting: "biometric").url, name: "finger")
      #expect(refused.exit == .code(77) && refused.errors.contains("pin_for_biometric"))

      let (serial, url) = try url(wanting: "pin")
      let mark = try scene.token.log.mark
      #expect(try await scene.token.enrol(url, name: "desk", choosing: "135790").exit == .code(0))
      try await scene.token.log.line(with: "] connected to", from: mark)
      // A hold alone does not approve; a wrong PIN costs an attempt.
      var login = try await scene.login(with: serial)
      try await scene.token.perform(.hold)
      try await scene.token.type("246801")
      try await scene.token.log.line(with: "pin-wrong", "1 of 2", from: login.mark)
      #expect(try server.challengeStatus(login.portal) == "pending")
      try await scene.token.type("135790")
      #expect(try await scene.ending(of: login).hasPrefix("approved"))
      #expect(try server.finalise(serial, login.portal) == "ACCEPT")

      let change = try scene.token.begin("pin", "change", "desk")
      try await scene.token.type("135790")
      try await scene.token.choose("864201")
      try await change.outcome().succeeded()
      // The last wrong PIN removes this account and no other.
      login = try await scene.login(with: serial)
      for guess in ["135790", "246801"] { try await scene.token.type(guess) }
      #expect(try await scene.ending(of: login).contains("too many wrong PINs"))
      #expect(try server.challengeStatus(login.portal) == "pending")
      #expect(try await scene.token.accounts() == [])
      try await scene.end()
    }

    @Test func `A PIN chosen by the user alone, at enrollment or later`() async throws {
      let server = try PushServer.shared.get()
      let scene = try PushScene(at: server)
      try await scene.token.start()
      func accept(_ serial: String, _ account: String, with pin: String) async throws {
        let login = try await scene.login(with: serial, account: account)
        try await scene.token.perform(.hold)
        try await scene.token.type(pin)
        #expect(try await scene.ending(of: login).hasPrefix("approved"))
        #expect(try server.finalise(serial, login.portal) == "ACCEPT")
        let decided = try await scene.token.audit(of: login.token).filter { $0.kind == "decided" }.map(\.detail)
        #expect(decided == ["accept by PIN"])
      }

      let first = try server.makeToken()
      let enrolment = try scene.token.begin("enroll", first.url, "--name", "desk", "--ask-pin", "--json")
      try await scene.token.choose("135790")
      try await enrolment.outcome().succeeded()
      try await accept(first.serial, "desk", with: "135790")

      let second = try server.makeToken()
      try await scene.enrol(second.url, as: "later")
      let choice = try scene.token.begin("pin", "change", "later")
      try await scene.token.choose("864201")
      try await choice.outcome().succeeded()
      try await accept(second.serial, "later", with: "864201")
      try await scene.end()
    }
  }
}
