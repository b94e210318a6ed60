// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// An unreachable server: its effect on other servers, and the reconnection.
  @Suite struct Outages {
    @Test func `An answer that cannot be delivered does not delay another server's login`() async throws {
      let dying = try PushServer()
      try await withDesk(and: [dying]) { scene, serial in
        let elsewhere = try dying.makeToken()
        try await scene.enrol(elsewhere.url, as: "elsewhere")
        let undelivered = try await scene.asked("elsewhere") { try dying.trigger(elsewhere.serial) }
        try dying.stop()
        try await scene.token.answer(undelivered.token, with: .hold, from: undelivered.mark)
        try await scene.token.shows("outcome unknown, retrying")
        let stopped = ContinuousClock.now
        let login = try await scene.login(with: serial)
        #expect(ContinuousClock.now - stopped < .seconds(30))
        let status = try await scene.token.command("status").succeeded().output
        let line = "elsewhere: localhost:\(dying.port)/ttype/push has not confirmed it, request \(undelivered.token)"
        #expect(status.contains(line))
        try await scene.expect(
          .hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
        #expect(try await scene.token.ending(of: undelivered.token) == nil)
        try dying.start()
        #expect(try await scene.ending(of: undelivered).hasPrefix("approved"))
        #expect(try dying.challengeStatus(undelivered.portal) == "accept")
      }
    }

    @Test func `A server that is off is polled less and less often, and detected soon afterwards`() async throws {
      let server = try PushServer()
      let scene = try PushScene(at: server)
      try await scene.token.start()
      let (serial, url) = try server.makeToken()
      try await scene.enrol(url, as: "desk")
      try server.stop()
      let mark = try scene.token.log.mark
      try await scene.token.log.line(with: "not connected to", from: mark)
      try await Task.sleep(for: .seconds(25))
      let attempts = try scene.token.log.lines.dropFirst(mark).count { $0.contains("not connected to") }
      // The backoff doubles from at most 1 s: 1, 2, 4 … 16 s, each at least half as long. At the interval for a reachable
      // server there would be about twelve.
      #expect((4...8).contains(attempts), "\(attempts) attempts in 25 s")
      let before = try scene.token.log.mark
      try server.start()
      let back = ContinuousClock.now
      try await scene.token.log.line(with: "] connected to", from: before, within: .seconds(70))
      print("a server that was off for 25 s: \(attempts) attempts, found after \(ContinuousClock.now - back)")
      let login = try await scene.login(with: serial)
      try await scene.expect(.hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
      try await scene.end()
    }
  }
}
