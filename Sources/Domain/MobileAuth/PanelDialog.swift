// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// Prompts at the panel outside of a request. A dialog that ends early is not resumed, so the panel never waits for
/// the input of an old command.
package struct PanelDialog: Sendable {
  package enum EntryError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Canceled or denied at the panel (9006).
    case canceled
    case timedOut
    case panelUnavailable(String)

    package var description: String { number.map { "\(explanation) (\($0))" } ?? explanation }

    /// Number of the error catalog; nil for errors without a number.
    package var number: Int? { self == .canceled ? PanelDialog.canceledNumber : nil }

    /// The description without the number.
    package var explanation: String {
      switch self {
      case .canceled: "canceled at the panel"
      case .timedOut: "no input at the panel within the time limit"
      case .panelUnavailable(let why): "the panel is not usable: \(why)"
      }
    }
  }

  /// Number of the error catalog for what the user canceled at the panel.
  package static let canceledNumber = 9006

  /// The time limit of each prompt.
  static let limit = Duration.seconds(120)

  private let panel: any Panel
  private let environment: TokenEnvironment

  package init(_ panel: any Panel, in environment: TokenEnvironment) {
    self.panel = panel
    self.environment = environment
  }

  /// Asks for the existing PIN.
  /// - Throws: `EntryError`, `CancellationError`.
  package func currentPIN(length: Int) async throws -> PIN {
    try await pin(length, showing: .pinWanted)
  }

  /// Asks for a new PIN, typed twice, until it satisfies every rule and both entries are the same.
  /// - Parameter violation: returns the number of the violated rule, as in `Indication.pinRefused`; nil for none.
  package func newPIN(length: Int, violation: @Sendable (PIN) -> Int?) async throws -> PIN {
    while true {
      let first = try await pin(length, showing: .newPINWanted(again: false))
      if let rule = violation(first) {
        await panel.show(.pinRefused(rule: rule))
        continue
      }
      let second = try await pin(length, showing: .newPINWanted(again: true))
      if first == second { return second }
      await panel.show(.pinRefused(rule: 5))
    }
  }

  /// Asks for a hold, so that no program on this board can do alone what follows.
  package func hold() async throws {
    try await ask(.confirmation, showing: .confirmationWanted) { (event: PanelEvent) throws(EntryError) -> Void? in
      guard case .gesture(let gesture) = event else { return nil }
      guard gesture.kind == .hold else { throw .canceled }
      return ()
    }
  }

  /// Asks for the code of a custom authenticator: 1 to `PIN.longest` digits.
  package func code() async throws -> EnteredDigits {
    try await ask(.code(orEnterAlone: false), showing: .numberWanted) {
      (event: PanelEvent) throws(EntryError) -> EnteredDigits? in
      switch event {
      case .entered(let digits): return digits
      case .gesture: throw .canceled
      default: return nil
      }
    }
  }

  /// Asks for a very long hold, to confirm an irreversible action.
  package func veryLongHold() async throws {
    try await ask(.veryLongHold, showing: .veryLongHoldWanted) { (event: PanelEvent) throws(EntryError) -> Void? in
      guard case .gesture(let gesture) = event else { return nil }
      guard gesture.kind == .veryLongHold else { throw .canceled }
      return ()
    }
  }

  package func show(_ indication: Indication) async { await panel.show(indication) }

  private func pin(_ count: Int, showing indication: Indication) async throws -> PIN {
    try await ask(.digits(count: count), showing: indication) { (event: PanelEvent) throws(EntryError) -> PIN? in
      switch event {
      case .entered(let digits): return PIN(digits)
      case .gesture: throw .canceled
      default: return nil
      }
    }
  }

  private func ask<Answer: Sendable>(
    _ prompt: Prompt, showing indication: Indication,
    take: @escaping @Sendable (PanelEvent) throws(EntryError) -> Answer?
  ) async throws -> Answer {
    await panel.show(indication)
    return try await withThrowingTaskGroup(of: Answer.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        try await environment.sleep(for: Self.limit)
        throw EntryError.timedOut
      }
      group.addTask {
        for await event in panel.events(for: prompt) {
          if case .unavailable(let why) = event { throw EntryError.panelUnavailable(why) }
          if let answer = try take(event) { return answer }
        }
        try Task.checkCancellation()
        throw EntryError.panelUnavailable("the panel ended the prompt")
      }
      guard let answer = try await group.next() else { throw CancellationError() }
      return answer
    }
  }
}
