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
    /// An authenticator outside of the panel canceled (9006), and why.
    case authenticatorCanceled(String)
    /// The authenticator wants the PIN instead.
    case pinInstead
    /// The driver of the authenticator could not be used, and why.
    case authenticatorFailed(String)
    /// The driver takes no more tries, and why; whether the registration must end.
    case authenticatorExhausted(String, revokes: Bool)

    package var description: String { number.map { "\(explanation) (\($0))" } ?? explanation }

    /// Number of the error catalog; nil for errors without a number.
    package var number: Int? {
      switch self {
      case .canceled, .authenticatorCanceled: PanelDialog.canceledNumber
      case .timedOut, .panelUnavailable, .pinInstead, .authenticatorFailed, .authenticatorExhausted: nil
      }
    }

    /// Why an authenticator canceled; nil for other errors.
    package var underlyingError: String? { if case .authenticatorCanceled(let why) = self { why } else { nil } }

    /// The description without the number.
    package var explanation: String {
      switch self {
      case .canceled: "canceled at the panel"
      case .timedOut: "no input at the panel within the time limit"
      case .panelUnavailable(let why): "the panel is not usable: \(why)"
      case .authenticatorCanceled(let why): "canceled by the authenticator: \(why)"
      case .pinInstead: "the authenticator asks for the PIN instead"
      case .authenticatorFailed(let why): "the authenticator cannot be used now: \(why)"
      case .authenticatorExhausted(let why, let revokes):
        "the authenticator has failed: \(why)\(revokes ? "; it is no longer registered" : "")"
      }
    }
  }

  /// Number of the error catalog for what the user canceled at the panel.
  package static let canceledNumber = 9006

  /// What a login is proved with.
  package enum Proof: Sendable {
    case data(AuthenticatorData)
    /// The user chose the PIN; nil if it is still to be typed.
    case pin(PIN?)
  }

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

  /// Asks for the code of a custom authenticator.
  /// - Parameter orPIN: whether Enter alone chooses the PIN instead.
  package func code(orPIN: Bool) async throws -> Proof {
    try await ask(.code(orEnterAlone: orPIN), showing: .numberWanted) {
      (event: PanelEvent) throws(EntryError) -> Proof? in
      switch event {
      case .entered(let digits): return .data(AuthenticatorData(digits))
      case .enteredNothing: return .pin(nil)
      case .gesture: throw .canceled
      default: return nil
      }
    }
  }

  /// Asks for a hold, after which an authenticator is asked.
  /// - Parameter pinLength: the number of digits of the PIN; nil if it cannot be used instead.
  /// - Returns: the PIN if it was typed instead.
  package func hold(orPINOf pinLength: Int?) async throws -> PIN? {
    let proof = try await ask(.authenticator(orPINOf: pinLength, hold: true), showing: .confirmationWanted) {
      (event: PanelEvent) throws(EntryError) -> Proof? in
      switch event {
      case .entered(let digits): return .pin(PIN(digits))
      case .gesture(let gesture) where gesture.kind == .hold: return .pin(nil)
      case .gesture: throw .canceled
      default: return nil
      }
    }
    if case .pin(let pin) = proof { return pin }
    return nil
  }

  /// Asks a driver for the data of its authenticator; a denial at the panel cancels it.
  /// - Parameter progress: called with what the user has to do.
  package func data(
    from driver: any AuthenticatorDriver, for call: DriverCall, _ progress: @escaping @Sendable (String) -> Void
  ) async throws -> AuthenticatorData {
    guard case .data(let data) = try await proof(from: driver, for: call, orPINOf: nil, progress) else {
      throw EntryError.pinInstead
    }
    return data
  }

  /// Asks a driver for the data of its authenticator; the PIN can be typed meanwhile.
  /// - Parameters:
  ///   - pinLength: the number of digits of the PIN; nil if it cannot be used instead.
  ///   - progress: called with what the user has to do.
  package func proof(
    from driver: any AuthenticatorDriver, for call: DriverCall, orPINOf pinLength: Int?,
    _ progress: @escaping @Sendable (String) -> Void
  ) async throws -> Proof {
    let question = DriverPrompt(driver: driver, call: call)
    let prompt = Prompt.authenticator(orPINOf: pinLength, hold: false)
    return try await ask(prompt, asking: [question], showing: .numberWanted) {
      (event: PanelEvent) throws(EntryError) -> Proof? in
      switch event {
      case .gesture: throw .canceled
      case .entered(let digits): return .pin(PIN(digits))
      case .driver(.waiting(let what), _):
        progress("\(call.authenticator): \(what)")
        return nil
      case .driver(.retry(let why), _):
        progress("\(call.authenticator): try again: \(why)")
        return nil
      case .driver(.data(let data), _): return .data(data)
      case .driver(.canceled(let why), _): throw .authenticatorCanceled(why)
      case .driver(.fallback, _): throw .pinInstead
      case .driver(.failed(let why), _): throw .authenticatorFailed(why)
      case .driver(.exhausted(let why, let revokes), _): throw .authenticatorExhausted(why, revokes: revokes)
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
    _ prompt: Prompt, asking questions: [DriverPrompt] = [], showing indication: Indication,
    take: @escaping @Sendable (PanelEvent) throws(EntryError) -> Answer?
  ) async throws -> Answer {
    // Without the keypad, an authenticator or the button may still do.
    let needsKeypad = questions.isEmpty && !prompt.sources.contains(.gesture(.hold))
    return try await withThrowingTaskGroup(of: Answer.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        try await environment.sleep(for: Self.limit)
        throw EntryError.timedOut
      }
      group.addTask {
        var last: PanelEvent?
        repeat {
          // What the LED showed before the prompt may not have been seen.
          if last == .lit { await panel.show(.anotherRequest) }
          await panel.show(indication)
          for await event in panel.events(for: prompt, asking: questions, in: environment) {
            last = event
            switch event {
            case .unavailable(let why) where needsKeypad: throw EntryError.panelUnavailable(why)
            case .dark(let why): throw EntryError.panelUnavailable(why)
            default: if let answer = try take(event) { return answer }
            }
          }
          try Task.checkCancellation()
        } while last == .lit
        throw EntryError.panelUnavailable("the panel ended the prompt")
      }
      guard let answer = try await group.next() else { throw CancellationError() }
      return answer
    }
  }
}
