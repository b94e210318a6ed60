import Foundation

/// The LED's prompts for input.
package enum Wanted: String, Sendable {
  case pin = "PIN wanted"
  case newPIN = "new PIN wanted"
  case newPINAgain = "new PIN wanted, a second time"
  case number = "number or other data wanted"
}

extension TestToken {
  package static let pinWrong = "wrong PIN or choice, n attempts left"
  package static let entering = "digits typed: Enter submits"
  package static let ignored = "press or key ignored"
  package static let newPINRefused =
    "new PIN refused: 1 block list, 2 sequence, 3 repeats, 4 length, 5 entries differ"

  /// Waits for the prompt and the guard time, then types the digits and Enter. Keys before the guard time are ignored,
  /// so it types again if there is no reaction.
  /// - Parameter meaning: an indication that the LED must show later, even if only for a second.
  /// - Returns: the LED's first reaction.
  @discardableResult
  package func type(
    _ digits: String, when wanted: Wanted = .pin, until meaning: String? = nil
  ) async throws -> String {
    let eyes = try begin("simulate", "led", "--follow", "--json")
    for _ in 1...3 {
      try await eyes.output.line(with: "\"\(wanted.rawValue)\"", from: max(0, eyes.output.mark - 1))
      try await Task.sleep(for: .milliseconds(450))
      let mark = eyes.output.mark
      try await press(keys: digits.map(String.init) + ["enter"])
      let calm = [wanted.rawValue, Self.entering].map { "\"\($0)\"" }
      let reaction = await eyes.output.meaning(from: mark, within: .seconds(10), otherThan: calm)
      // For an existing PIN only a wrong number of digits is rejected: some digits came before the guard time.
      guard let reaction, reaction != Self.ignored, wanted != .pin || reaction != Self.newPINRefused else { continue }
      if let meaning { try await eyes.output.line(with: "\"\(meaning)\"", from: mark) }
      return reaction
    }
    throw NotSeen(description: "a reaction to an entry for \"\(wanted.rawValue)\"")
  }

  /// Chooses a PIN that the policy allows.
  package func choose(_ pin: String) async throws {
    for wanted in [Wanted.newPIN, .newPINAgain] { try await type(pin, when: wanted) }
  }

  package func press(_ keys: String...) async throws { try await press(keys: keys) }

  package func press(keys: [String]) async throws {
    try await run(Program.token, ["simulate", "keys"] + keys + ["--state", state]).succeeded()
  }

  /// Enrolls an account and chooses its PIN at the panel of the running service.
  package func enrol(_ uri: String, name: String, choosing pin: String) async throws -> Outcome {
    let enrolment = try begin("enroll", uri, "--name", name, "--json")
    try await choose(pin)
    return try await enrolment.outcome()
  }
}

extension Transcript {
  /// The LED's meaning in the first follower line other than `calm`.
  fileprivate func meaning(from mark: Int, within limit: Duration, otherThan calm: [String]) async -> String? {
    let line = await first(from: mark, within: limit) { line in !calm.contains { line.contains($0) } }
    return line.flatMap { try? JSONDecoder().decode(TestToken.LED.self, from: Data($0.utf8)).meaning }
  }
}
