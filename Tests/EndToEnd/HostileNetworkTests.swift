// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// A network process that was taken over: the device process approves nothing that the user has not approved, stays
  /// within its bounds, and recovers.
  @Suite struct HostileNetworks {
    private static let dice = Dice.fresh()

    private static func dice(of lane: Int) -> Dice { Dice(seed: dice.seed &+ UInt64(lane)) }

    @Test("A hostile network process gets no approval", arguments: 0..<3)
    func getsNoApproval(lane: Int) async throws {
      try await withHostileNetwork(Self.dice(of: lane)) { fixture, hostile, path in
        // An approval, so that there are responses to replay.
        try await fixture.approve()
        let memory = try peakMemory(of: fixture.token.running.processID)

        hostile.share = 1
        var transactions: [String] = []
        // The pauses between attempts grow; a new device process begins with short ones.
        for _ in 1...4 {
          try await fixture.token.kill9()
          try await fixture.token.startDevice(at: path)
          for _ in 1...6 {
            transactions.append(try await fixture.ask())
            try await Task.sleep(for: .seconds(1))
          }
        }
        let process = try fixture.token.running
        #expect(process.isRunning)
        #expect(hostile.played.values.reduce(0, +) > 20, "\(hostile.played)")
        #expect(try peakMemory(of: process.processID) < memory + 16_384)
        for transaction in transactions {
          #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
          #expect(try await fixture.token.audit(of: transaction).allSatisfy { $0.kind != "decided" })
          try await fixture.portal.cancel(transaction)
        }

        hostile.share = 0
        let mark = try fixture.token.log.mark
        try await fixture.token.log.line(with: "] connected to", from: mark, within: .seconds(120))
        #expect(try await fixture.token.accounts() == [.init(account: fixture.account, stage: "active")])
        try await fixture.approve()
      }
    }

    @Test(
      "Beside exchanges that are attacked, only what the user has held the button for is approved", arguments: 3..<5)
    func onlyWhatWasHeldFor(lane: Int) async throws {
      var dice = Self.dice(of: lane)
      try await withHostileNetwork(dice) { fixture, hostile, _ in
        hostile.share = 0.3
        var trials: [Trial] = []
        for _ in 1...10 {
          trials.append(try await fixture.trial(isPressed: .random(using: &dice)))
        }
        hostile.share = 0
        _ = try await eventually("the end of all answers", within: .seconds(120)) {
          try await fixture.token.unconfirmed().isEmpty ? true : nil
        }
        var approved = 0
        for trial in trials {
          let isApproved = try await fixture.portal.result(of: trial.transaction).isAuthenticated
          let decisions = try await fixture.token.audit(of: trial.transaction).filter { $0.kind == "decided" }
          #expect(isApproved == false || trial.holds == 1, "\(trial)")
          #expect(decisions.count <= trial.holds, "\(trial): \(decisions)")
          approved += isApproved ? 1 : 0
        }
        print("\(approved) approved, \(trials.filter { $0.holds == 1 }.count) held for, of \(trials.count)")
        #expect(hostile.played.values.reduce(0, +) > 1, "\(hostile.played)")
      }
    }
  }
}

/// A connected token with a program in place of its network process, at `path`, which plays no trick yet.
private func withHostileNetwork(
  _ dice: Dice, _ body: (EndToEndFixture, HostileNetwork, _ path: String) async throws -> Void
) async throws {
  print("hostile network process with seed \(dice.seed)")
  try await withSplitScene { fixture in
    try await fixture.token.stop()
    let path = fixture.folder.file("hostile.relay")
    let hostile = try HostileNetwork(at: path, before: fixture.token.relayPath, dice: dice)
    defer { hostile.end() }
    try await fixture.token.startDevice(at: path)
    try await fixture.token.log.line(with: "] connected to")
    try await body(fixture, hostile, path)
  }
}

/// A request beside exchanges that are attacked.
private struct Trial {
  let transaction: String
  /// How often the button was held for it.
  let holds: Int
}

extension EndToEndFixture {
  /// Starts a request. If it comes to the panel, and the user is willing, the button is held for it once.
  fileprivate func trial(isPressed: Bool) async throws -> Trial {
    let transaction = try await ask()
    let isShown = try? await eventually("\(transaction) on the panel", within: .seconds(6)) {
      try await token.pendingRequests().contains { $0.transaction == transaction && $0.pressCounts } ? true : nil
    }
    guard isPressed, isShown == true else { return Trial(transaction: transaction, holds: 0) }
    try await token.perform(.hold)
    return Trial(transaction: transaction, holds: 1)
  }
}

/// The maximum resident memory of a process so far, in kB.
private func peakMemory(of process: Int32) throws -> Int {
  let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
  let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
  return try #require(Int(line.dropFirst(6).split(whereSeparator: \.isWhitespace)[0]))
}
