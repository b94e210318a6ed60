/// A user's gesture at the panel, in real time.
package enum Act: String, Sendable {
  case hold, double
  case notMe = "not-me"
  case cancelKeys

  fileprivate var words: [String] {
    switch self {
    case .hold: ["hold", "1"]
    case .double, .notMe: [rawValue]
    case .cancelKeys: ["keys", "escape", "escape"]
    }
  }
}

extension TestToken {
  /// Waits until a press is accepted for the request, and acts; acts again if there is no reaction.
  /// - Parameter mark: a position in the log; only later lines count.
  package func answer(_ transaction: String, with act: Act, from mark: Int = 0) async throws {
    let log = try log
    try await log.line(with: "opened request \(transaction)", from: mark)
    for _ in 1...3 {
      _ = try await eventually("a press counts for \(transaction)") {
        try await pendingFacts().contains { $0.transaction == transaction && $0.pressCounts } ? true : nil
      }
      try await perform(act)
      let reaction = try? await log.line(with: "decided request \(transaction)", from: mark, within: .seconds(10))
      if reaction != nil { return }
    }
    throw NotSeen(description: "a reaction to \(act.rawValue) for \(transaction)")
  }

  package func perform(_ act: Act) async throws {
    try await run(Program.token, ["simulate"] + act.words + ["--state", state]).succeeded()
  }

  package func hold(seconds: Double) async throws {
    try await run(Program.token, ["simulate", "hold", "\(seconds)", "--state", state]).succeeded()
  }
}
