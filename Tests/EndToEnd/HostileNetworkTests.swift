// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// A network process that was taken over: the device process approves nothing that the user has not approved, stays
  /// within its bounds, and recovers.
  @Suite struct HostileNetworks {
    private static let dice = Dice.fresh()

    private static func withHostileNetwork(
      _ lane: Int, _ body: (HostileScene, inout Dice) async throws -> Void
    ) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      print("hostile network process with seed \(Self.dice.seed), lane \(lane)")
      try await withSplitScene { fixture in
        let scene = try await HostileScene(fixture, dice)
        defer { scene.hostile.end() }
        try await body(scene, &dice)
      }
    }

    @Test("A hostile network process gets no approval", arguments: 0..<3)
    func getsNoApproval(lane: Int) async throws {
      try await Self.withHostileNetwork(lane) { scene, _ in
        let (fixture, hostile) = (scene.fixture, scene.hostile)
        // An approval, so that there are responses to replay.
        try await fixture.approve()
        let memory = try peakMemory(of: fixture.token.running.processID)

        hostile.share = 1
        var transactions: [String] = []
        for _ in 1...4 {
          try await scene.restart()
          for _ in 1...6 {
            transactions.append(try await fixture.ask())
            try await Task.sleep(for: .seconds(1))
          }
        }
        let process = try fixture.token.running
        #expect(process.isRunning)
        #expect(hostile.played.values.reduce(0, +) > 8, "\(hostile.played)")
        #expect(try peakMemory(of: process.processID) < memory + 16_384)
        for transaction in transactions {
          #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
          #expect(try await fixture.token.audit(of: transaction).allSatisfy { $0.kind != "decided" })
          try await fixture.portal.cancel(transaction)
        }

        let mark = try fixture.token.log.mark
        hostile.share = 0
        try await fixture.token.log.line(with: "] connected to", from: mark, within: .seconds(120))
        #expect(try await fixture.token.accounts() == [.init(account: fixture.account, stage: "active")])
        try await fixture.approve()
      }
    }

    @Test(
      "Beside exchanges that are attacked, only what the user has held the button for is approved", arguments: 3..<5)
    func onlyWhatWasHeldFor(lane: Int) async throws {
      try await Self.withHostileNetwork(lane) { scene, dice in
        let fixture = scene.fixture
        /// How often the button was held for each request.
        var holds: [String: Int] = [:]
        for isHeld in [true, true, true, true, false, false, false].shuffled(using: &dice) {
          if isHeld {
            let decided = try await scene.askUntilDecided { try await fixture.token.perform(.hold) }
            holds[decided.transaction] = decided.acts
          } else {
            holds[try await scene.ask()] = 0
          }
        }
        try await scene.calm()
        _ = try await eventually("the end of all answers") {
          try await fixture.token.unconfirmed().isEmpty ? true : nil
        }
        var approved = 0
        for (transaction, holds) in holds {
          let isApproved = try await fixture.portal.result(of: transaction).isAuthenticated
          let decisions = try await fixture.token.audit(of: transaction).count { $0.kind == "decided" }
          #expect(!isApproved || holds > 0, "\(transaction)")
          #expect((min(holds, 1)...holds).contains(decisions), "\(transaction): \(decisions) of \(holds)")
          approved += isApproved ? 1 : 0
          if !isApproved { try await fixture.portal.cancel(transaction) }
        }
        print("\(approved) of 4 approved in lane \(lane), \(scene.hostile.played)")
        #expect(scene.hostile.played.values.reduce(0, +) > 1, "\(scene.hostile.played)")
        try await fixture.approve()
      }
    }
  }
}

/// The maximum resident memory of a process so far, in kB.
private func peakMemory(of process: Int32) throws -> Int {
  let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
  let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
  return try #require(Int(line.dropFirst(6).split(whereSeparator: \.isWhitespace)[0]))
}
