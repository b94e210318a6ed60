// SPDX-License-Identifier: Apache-2.0
import Foundation
import FreePorts
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// A gateway of privacyIDEA that sends hints to the token; polling is too slow to matter.
  @Suite struct DirectPush {
    @Test("A hint is faster than the next poll, and polling works without hints")
    func hintIsFasterThanTheNextPollAndPollingWorksWithoutHints() async throws {
      let server = try PushServer()
      let port = try FreePort.reserve()
      try server.postLogins(to: "http://127.0.0.1:\(port)/push")
      let (serial, url) = try server.makeToken()
      #expect(url.contains("poll_only=False"))
      let fixture = try PushServerFixture(
        at: server, settings: "listen = \"127.0.0.1:\(port)\"", pace: "fast_ms = 20000\nidle_seconds = 20")
      try await fixture.token.start()
      try await fixture.enroll(url, as: "desk")
      // The polls of the first round are over, and the next is much later.
      try await Task.sleep(for: .seconds(2))
      let begun = ContinuousClock.now
      let login = try await fixture.login(with: serial)
      let delay = ContinuousClock.now - begun
      print("shown \(delay) after the portal asked, polling every 20 s")
      #expect(delay < .seconds(12))
      try await fixture.expect(.hold, on: login, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)

      // Hints to a port without a listener.
      try server.postLogins(to: "http://127.0.0.1:\(try FreePort.reserve())/push")
      let polled = try await fixture.login(with: serial)
      try await fixture.expect(
        .hold, on: polled, toEndAs: "approved", seenAs: "accept", finally: "ACCEPT", with: serial)
      try await fixture.end()
    }
  }
}
