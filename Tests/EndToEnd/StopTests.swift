// SPDX-License-Identifier: Apache-2.0
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct Stops {
    enum MonotonicInstant: String, CaseIterable { case idle, challenged, held, answering, disconnected }

    /// As when the terminal closes in which the service was started.
    @Test("A hang-up stops the token like a term signal") func hangUp() async throws {
      try await withScene { fixture in
        let process = try fixture.token.running
        process.send(SIGHUP)
        #expect(try await process.exit() == .code(0))
        _ = try await process.errors.whole()
        #expect(process.errors.lines.last?.contains("stopped") == true)
      }
    }

    /// A button that is held for 20 s is stuck.
    private static let board = QuickBoard.withButton.replacing("stuck_ms = 60000", with: "stuck_ms = 20000")

    /// A busy machine adds to the time that a stop takes: one of up to five stops must keep the limit.
    @Test(
      "A term signal stops the token within two seconds, or when an answer that was begun has ended",
      arguments: MonotonicInstant.allCases)
    func aTermSignalStopsTheToken(moment: MonotonicInstant) async throws {
      let limit: Duration = [.held, .answering].contains(moment) ? .seconds(32) : .seconds(2)
      var times: [Duration] = []
      while times.count < 5, times.allSatisfy({ $0 >= limit }) {
        try await withScene(board: Self.board) { fixture in times.append(try await Self.stop(fixture, at: moment)) }
      }
      #expect(times.contains { $0 < limit } && times.allSatisfy { $0 < limit + .seconds(20) }, "\(times)")
    }

    /// - Returns: how long the stop took.
    private static func stop(_ fixture: EndToEndFixture, at moment: MonotonicInstant) async throws -> Duration {
      let transaction = moment == .idle ? "" : try await fixture.ask()
      if moment != .idle { try await fixture.token.asks("confirmation wanted") }
      var holding: ChildProcess?
      switch moment {
      case .idle, .challenged: break
      case .held:
        let eyes = try fixture.token.watchLED()
        holding = try ChildProcess(Program.token, ["simulate", "hold", "30", "--state", fixture.token.state])
        try await eyes.output.line(with: "held long enough: release to accept")
      case .answering:
        try await fixture.server.kill9()
        try await fixture.token.answer(transaction, with: .hold)
      case .disconnected:
        try await fixture.server.kill9()
        try await fixture.token.log.line(with: "not connected to")
      }
      let process = try fixture.token.running
      let asked = ContinuousClock.now
      process.send(SIGTERM)
      #expect(try await process.exit() == .code(0))
      let time = ContinuousClock.now - asked
      _ = try await process.errors.whole()
      #expect(process.errors.lines.last?.contains("stopped") == true)
      // A stop is not a release: a button that is still pressed approves nothing.
      let decided = try await fixture.token.audit().count { $0.kind == "decided" }
      #expect(decided == (moment == .answering ? 1 : 0))
      try await holding?.kill9()
      return time
    }
  }
}
