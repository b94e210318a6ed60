// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
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
  package static let newPINRefused =
    "new PIN refused: 1 block list, 2 sequence, 3 repeats, 4 length, 5 entries differ"

  /// Waits for the prompt and until keys are accepted, then types the digits and Enter. Types again if the panel did
  /// not accept the entry.
  /// - Parameter meaning: an indication that the LED must show later, even if only for a second.
  /// - Returns: the LED's first reaction to this entry.
  @discardableResult
  package func type(
    _ digits: String, when wanted: Wanted = .pin, until meaning: String? = nil
  ) async throws -> String {
    let eyes = try watchLED()
    for _ in 1...3 {
      try await eyes.output.line(with: "\"\(wanted.rawValue)\"", from: max(0, eyes.output.mark - 1))
      _ = try await eventually("a key counts") { try await pressCounts() ? true : nil }
      let former = try await look().entries
      let mark = eyes.output.mark
      try await press(keys: digits.map(String.init) + ["enter"])
      guard await isEntered(after: former) else { continue }
      let calm = [wanted.rawValue, Self.entering]
      guard let reaction = await eyes.output.meaning(from: mark, after: former, otherThan: calm) else { break }
      // For an existing PIN only a wrong number of digits is rejected: some digits came before the guard time.
      guard wanted != .pin || reaction != Self.newPINRefused else { continue }
      if let meaning { try await eyes.output.line(with: "\"\(meaning)\"", from: mark) }
      return reaction
    }
    throw OutputTimeoutError(description: "a reaction to an entry for \"\(wanted.rawValue)\"")
  }

  /// Whether the panel has taken an entry after `former` ones. Typing again while the keys are still on their way would
  /// be another entry.
  private func isEntered(after former: Int) async -> Bool {
    let entered: Void? = try? await eventually("an entry", within: .seconds(30)) {
      try await look().entries > former ? () : nil
    }
    return entered != nil
  }

  /// Chooses a PIN that the policy allows.
  package func choose(_ pin: String) async throws {
    for wanted in [Wanted.newPIN, .newPINAgain] { try await type(pin, when: wanted) }
  }

  package func press(_ keys: String...) async throws { try await press(keys: keys) }

  /// Returns when the panel has received the keys.
  package func press(keys: [String]) async throws { try await act(.init(request: "keys", keys: keys)) }

  /// Enrolls an account and chooses its PIN at the panel of the running service.
  package func enroll(_ uri: String, name: String, choosing pin: String) async throws -> Outcome {
    let enrollment = try begin("enroll", uri, "--name", name, "--json")
    try await choose(pin)
    return try await enrollment.outcome()
  }
}

extension Transcript {
  /// The LED's meaning in the first follower line other than `calm` that comes after more than `former` entries: lines
  /// about earlier entries may still be on their way.
  fileprivate func meaning(from mark: Int, after former: Int, otherThan calm: [String]) async -> String? {
    @Sendable func reaction(_ line: String) -> TestToken.LED? {
      let led = try? JSONDecoder().decode(TestToken.LED.self, from: Data(line.utf8))
      return led.flatMap { $0.entries > former && !calm.contains($0.meaning) ? $0 : nil }
    }
    return await first(from: mark, within: patience) { reaction($0) != nil }.flatMap(reaction)?.meaning
  }
}
