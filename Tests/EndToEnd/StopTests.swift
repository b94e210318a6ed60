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
        #expect(process.errors.lines.last?.contains("stopped") == true)
      }
    }

    @Test(
      "A term signal stops the token within two seconds, or when an answer that was begun has ended",
      arguments: MonotonicInstant.allCases)
    func aTermSignalStopsTheToken(moment: MonotonicInstant) async throws {
      try await withScene { fixture in
        let transaction = moment == .idle ? "" : try await fixture.ask()
        if moment != .idle { try await fixture.token.asks("confirmation wanted") }
        var holding: ChildProcess?
        switch moment {
        case .idle, .challenged: break
        case .held:
          holding = try ChildProcess(Program.token, ["simulate", "hold", "30", "--state", fixture.token.state])
          try await fixture.token.shows("held long enough: release to accept")
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
        #expect(ContinuousClock.now - asked < ([.held, .answering].contains(moment) ? .seconds(32) : .seconds(2)))
        #expect(process.errors.lines.last?.contains("stopped") == true)
        // A stop is not a release: a button that is still pressed approves nothing.
        let decided = try await fixture.token.audit().count { $0.kind == "decided" }
        #expect(decided == (moment == .answering ? 1 : 0))
        try await holding?.kill9()
      }
    }
  }
}
