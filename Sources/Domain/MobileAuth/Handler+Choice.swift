// SPDX-License-Identifier: Apache-2.0
/// A choice without a keypad: the panel shows the options in turn until the request ends. Each option is blinked, and a
/// hold that begins in the window after it chooses it.
extension Handler {
  /// How long after an option was blinked a hold that chooses it may begin. Includes the panel's guard time of up to 5
  /// s.
  static let choiceWindow = Duration.seconds(6)

  func choose(
    from challenge: ChoiceChallenge, of request: MobileAuthRequest, _ touch: Touch, since announced: MonotonicInstant
  ) async throws -> ChallengeResponse {
    @Sendable func answer(_ gesture: Gesture, choosing option: String?) -> ChallengeResponse? {
      request.answered(
        by: gesture, choosing: option, after: environment.now - announced, idempotencyKey: environment.makeUUID())
    }
    var trouble: PanelEvent?
    while true {
      for (key, option) in zip(challenge.keys, challenge.options) {
        let digits = key.utf8.map { Int($0 - 0x30) }
        var ending = try await pass(
          request.pending, .denial, touch, &trouble, while: { await panel.show(.option(digits)) },
          take: { answer($0, choosing: nil) })
        if case .over = ending {
          await panel.show(.optionOffered)
          let end = environment.now + Self.choiceWindow
          ending = try await pass(
            request.pending, .confirmation, touch, &trouble, while: { try? await environment.sleep(until: end) },
            take: { answer($0, choosing: option) })
        }
        if case .answered(let response) = ending { return response }
      }
    }
  }

  /// The end of one phase, in which an option is blinked or can be chosen.
  private enum PhaseOutcome: Sendable {
    case answered(ChallengeResponse)
    /// The phase's time is over and the panel is not touched.
    case over
    /// Like `over`, but the button was stuck or unavailable, or the LED showed something else or nothing.
    case disturbed
  }

  private enum Turn: Sendable {
    case event(PanelEvent)
    case timeIsOver
  }

  /// Runs one phase. A touch that began during the phase belongs to it, even if it lasts longer.
  /// - Parameters:
  ///   - trouble: the panel fault recorded last. A lasting fault is reported in every phase and recorded once.
  ///   - time: returns when the phase's time is over.
  private func pass(
    _ pending: PendingMobileAuthRequest, _ prompt: Prompt, _ touch: Touch, _ trouble: inout PanelEvent?,
    while time: @escaping @Sendable () async -> Void, take: @Sendable (Gesture) -> ChallengeResponse?
  ) async throws -> PhaseOutcome {
    try Task.checkCancellation()
    let (turns, teller) = AsyncStream.makeStream(of: Turn.self)
    let events = panel.events(for: prompt)
    return try await withThrowingDiscardingTaskGroup(returning: PhaseOutcome.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        for await event in events { teller.yield(.event(event)) }
        teller.finish()
      }
      group.addTask {
        await time()
        teller.yield(.timeIsOver)
      }
      var (isOver, isDisturbed) = (false, false)
      var last: PanelEvent?
      for await turn in turns {
        if case .event(let event) = turn { last = event }
        switch turn {
        case .event(.gesture(let gesture)): if let response = take(gesture) { return .answered(response) }
        case .event(let event) where event == trouble: isDisturbed = true
        case .event(let event):
          handleAuxiliaryEvent(event, pending, touch)
          switch event {
          case .stuck, .void, .unavailable, .dark:
            trouble = event
            isDisturbed = true
          case .touched, .released, .typing, .shortPress, .gesture, .entered, .enteredNothing, .driver, .lit:
            trouble = nil
          }
        case .timeIsOver: isOver = true
        }
        if isOver, !touch.isHeld { return isDisturbed ? .disturbed : .over }
      }
      try await rearm(touch, after: last)
      return .disturbed
    }
  }
}
