public import Secrets

/// What is asked of a person at the panel outside of any request. Whatever ends it early ends it for good: nobody finds
/// the panel still waiting for yesterday's PIN.
public struct PanelDialogue: Sendable {
  public enum Ending: Error, Equatable, Sendable, CustomStringConvertible {
    /// Cancelled or denied at the panel (9006).
    case cancelled
    case timedOut
    case panelUnavailable(String)

    public var description: String {
      switch self {
      case .cancelled: "cancelled at the panel (9006)"
      case .timedOut: "nobody did it at the panel in time"
      case .panelUnavailable(let why): "the panel is not usable: \(why)"
      }
    }
  }

  /// For each thing asked.
  static let limit = Duration.seconds(120)

  private let panel: any Panel
  private let timekeeper: any Timekeeper

  public init(_ panel: any Panel, timekeeper: any Timekeeper) {
    self.panel = panel
    self.timekeeper = timekeeper
  }

  /// A PIN that exists.
  /// - Throws: `Ending`, `CancellationError`.
  public func currentPIN(length: Int) async throws -> PIN {
    try await digits(length, showing: .pinWanted)
  }

  /// A PIN to be, typed twice; asked again until it keeps every rule and is the same both times.
  /// - Parameter violation: the rule it breaks, as `Indication.pinRefused` numbers them.
  public func newPIN(length: Int, violation: @Sendable (PIN) -> Int?) async throws -> PIN {
    while true {
      let first = try await digits(length, showing: .newPINWanted(again: false))
      if let rule = violation(first) {
        await panel.show(.pinRefused(rule: rule))
        continue
      }
      let second = try await digits(length, showing: .newPINWanted(again: true))
      if first == second { return second }
      await panel.show(.pinRefused(rule: 5))
    }
  }

  /// A very long hold, for what cannot be undone.
  public func veryLongHold() async throws {
    try await ask(.veryLongHold, showing: .veryLongHoldWanted) { (event: PanelEvent) throws(Ending) -> Void? in
      guard case .gesture(let gesture) = event else { return nil }
      guard gesture.kind == .veryLongHold else { throw .cancelled }
      return ()
    }
  }

  public func show(_ indication: Indication) async { await panel.show(indication) }

  private func digits(_ count: Int, showing indication: Indication) async throws -> PIN {
    try await ask(.digits(count: count), showing: indication) { (event: PanelEvent) throws(Ending) -> PIN? in
      switch event {
      case .entered(let pin): return pin
      case .gesture: throw .cancelled
      default: return nil
      }
    }
  }

  private func ask<Answer: Sendable>(
    _ prompt: Prompt, showing indication: Indication,
    take: @escaping @Sendable (PanelEvent) throws(Ending) -> Answer?
  ) async throws -> Answer {
    await panel.show(indication)
    return try await withThrowingTaskGroup(of: Answer.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        try await timekeeper.sleep(until: timekeeper.now + Self.limit)
        throw Ending.timedOut
      }
      group.addTask {
        for await event in panel.events(for: prompt) {
          if case .unavailable(let why) = event { throw Ending.panelUnavailable(why) }
          if let answer = try take(event) { return answer }
        }
        try Task.checkCancellation()
        throw Ending.panelUnavailable("the panel ended the prompt")
      }
      guard let answer = try await group.next() else { throw CancellationError() }
      return answer
    }
  }
}
