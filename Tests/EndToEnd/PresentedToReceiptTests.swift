// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// The rows of docs/benchmarks.md for authenticators. Runs with `MEASURE_AUTHENTICATORS=1` only, and prints them.
  @Suite struct PresentedToReceipt {
    private static let rounds = 15
    private static let isWanted = ProcessInfo.processInfo.environment["MEASURE_AUTHENTICATORS"] != nil

    private static let types =
      Plugins.authenticator("badge", verifiedBy: "signature = \"badge\"")
      + Plugins.authenticator("key", verifiedBy: "signature = \"security_key\"") + Fingerprints.types
      + "alternatives = [\"badge\", \"key\"]\n"

    private static let readers = """
      [authenticators]
      simulated_fingerprint = "finger"
      simulated_badge = "badge"
      simulated_key = "key"

      """

    private enum Means: String, CaseIterable {
      case pin = "Enter after the PIN"
      case finger, key, badge
    }

    @Test("From what the user presents to the receipt, for each authenticator", .enabled(if: isWanted))
    func measure() async throws {
      try await withPINScene(
        settings: Fingerprints.settings + "\ncustom_authenticators = true", types: Self.types,
        configuration: { _ in Self.readers }
      ) { fixture in
        let token = fixture.token
        try await token.registerFinger { _ in try await token.present("index") }
        for (reader, presented) in [("badge", Presented(badge: "red")), ("key", Presented(touch: true))] {
          let registration = try token.begin("authenticator", "register", "alice", reader)
          try await token.asks("confirmation wanted")
          try await token.perform(.hold)
          try await token.presentWhenAsked(presented)
          try await registration.outcome().succeeded()
        }
        for means in Means.allCases {
          var times: [Duration] = []
          for _ in 0..<Self.rounds { times.append(try await approve(fixture, by: means)) }
          let sorted = times.sorted().map { $0 / .milliseconds(1) }
          let (median, least, most) = (sorted[sorted.count / 2], sorted[0], sorted[sorted.count - 1])
          let row = [median, least, most].map { String(format: "%.1f", $0) }
          print(
            "| token: \(means.rawValue) to receipt | \(row[0]) ms (\(row[1]) to \(row[2]), n = \(sorted.count)) | | |")
        }
      }
    }

    /// - Returns: the time from what the user presents to the line of the log with the receipt.
    private func approve(_ fixture: EndToEndFixture, by means: Means) async throws -> Duration {
      let token = fixture.token
      let transaction = try await fixture.askForPIN(type: "transfer")
      try await token.asks("number or other data wanted")
      if means == .badge { try await token.perform(.hold) }
      if means == .pin { try await token.press(keys: "13589".map(String.init)) }
      // A reader is asked a moment after its prompt is shown.
      try await Task.sleep(for: .seconds(1))
      let began = ContinuousClock.now
      switch means {
      case .pin: try await token.press("enter")
      case .finger: try await token.present(.init(finger: "index"))
      case .key: try await token.present(.init(touch: true))
      case .badge: try await token.present(.init(badge: "red"))
      }
      try await token.log.line(with: "settled request \(transaction)")
      let end = ContinuousClock.now
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      return end - began
    }
  }
}
