// SPDX-License-Identifier: Apache-2.0
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct Stops {
    enum Moment: String, CaseIterable { case idle, challenged, held, answering, disconnected }

    @Test(arguments: Moment.allCases)
    func aTermSignalStopsTheTokenWithinTwoSeconds(moment: Moment) async throws {
      try await withScene { scene in
        let transaction = moment == .idle ? "" : try await scene.ask()
        if moment != .idle { try await scene.token.asks("confirmation wanted") }
        var holding: ChildProcess?
        switch moment {
        case .idle, .challenged: break
        case .held:
          holding = try ChildProcess(Program.token, ["simulate", "hold", "30", "--state", scene.token.state])
          try await scene.token.shows("held long enough: release to accept")
        case .answering:
          try await scene.server.kill9()
          try await scene.token.answer(transaction, with: .hold)
        case .disconnected:
          try await scene.server.kill9()
          try await scene.token.log.line(with: "not connected to")
        }
        let process = try scene.token.running
        let asked = ContinuousClock.now
        process.send(SIGTERM)
        #expect(try await process.exit() == .code(0))
        #expect(ContinuousClock.now - asked < .seconds(2))
        #expect(process.errors.lines.last?.contains("stopped") == true)
        // A stop is not a release: a button that is still pressed approves nothing.
        let decided = try await scene.token.audit().count { $0.kind == "decided" }
        #expect(decided == (moment == .answering ? 1 : 0))
        try await holding?.kill9()
      }
    }
  }
}
