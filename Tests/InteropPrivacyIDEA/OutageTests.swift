// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// An unreachable server: its effect on other servers, and the reconnection.
  @Suite struct Outages {
    @Test("An answer that cannot be delivered does not delay another server's login")
    func answerThatCannotBeDeliveredDoesNotDelayAnotherServersLogin() async throws {
      let dying = try PushServer()
      try await withDesk(and: [dying]) { fixture, serial in
        let elsewhere = try dying.makeToken()
        try await fixture.enroll(elsewhere.url, as: "elsewhere")
        let undelivered = try await fixture.asked("elsewhere") { try dying.trigger(elsewhere.serial) }
        try dying.stop()
        try await fixture.token.answer(undelivered.token, with: .hold, from: undelivered.mark)
        try await fixture.token.shows("outcome unknown, retrying")
        let stopped = ContinuousClock.now
        let login = try await fixture.login(with: serial)
        #expect(ContinuousClock.now - stopped < .seconds(30))
        let status = try await fixture.token.command("status").succeeded().output
        let line = "elsewhere: localhost:\(dying.port)/ttype/push has not confirmed it, request \(undelivered.token)"
        #expect(status.contains(line))
        try await fixture.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
        #expect(try await fixture.token.audit(of: undelivered.token).ending == nil)
        try dying.start()
        #expect(try await fixture.ending(of: undelivered).hasPrefix("approved"))
        #expect(try dying.challengeStatus(undelivered.portal) == "accept")
      }
    }

    @Test("A server that is off is polled less and less often, and detected soon afterwards")
    func serverThatIsOffIsPolledLessAndLessOftenAndDetectedSoonAfterwards() async throws {
      let server = try PushServer()
      let fixture = try PushServerFixture(at: server)
      try await fixture.token.start()
      let (serial, url) = try server.makeToken()
      try await fixture.enroll(url, as: "desk")
      try server.stop()
      let mark = try fixture.token.log.mark
      try await fixture.token.log.line(with: "not connected to", from: mark)
      try await Task.sleep(for: .seconds(25))
      let attempts = try fixture.token.log.lines.dropFirst(mark).count { $0.contains("not connected to") }
      // The backoff doubles from at most 1 s: 1, 2, 4 … 16 s, each at least half as long. At the interval for a
      // reachable server there would be about twelve.
      #expect((4...8).contains(attempts), "\(attempts) attempts in 25 s")
      let before = try fixture.token.log.mark
      try server.start()
      let back = ContinuousClock.now
      try await fixture.token.log.line(with: "] connected to", from: before, within: .seconds(70))
      print("a server that was off for 25 s: \(attempts) attempts, found after \(ContinuousClock.now - back)")
      let login = try await fixture.login(with: serial)
      try await fixture.expect(.hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
      try await fixture.end()
    }
  }
}
