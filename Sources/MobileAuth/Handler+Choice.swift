/// A choice at a panel that nothing can be typed on: the options go round until the request ends, each of them blinked
/// and then open to a hold.
extension Handler {
  /// So long a hold may begin once an option has been blinked. The panel's guard time, which may be 5 s, is part of it.
  static let choiceWindow = Duration.seconds(6)

  func choose(
    from challenge: ChoiceChallenge, of request: MobileAuthRequest, _ touch: Touch, since announced: Moment
  ) async throws -> ChallengeResponse {
    @Sendable func answer(_ gesture: Gesture, choosing option: String?) -> ChallengeResponse? {
      request.answered(
        by: gesture, choosing: option, after: timekeeper.now - announced, idempotencyKey: makeIdempotencyKey())
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
          let end = timekeeper.now + Self.choiceWindow
          ending = try await pass(
            request.pending, .confirmation, touch, &trouble, while: { try? await timekeeper.sleep(until: end) },
            take: { answer($0, choosing: option) })
        }
        if case .answered(let response) = ending { return response }
      }
    }
  }

  /// How one phase ends: an option being blinked, or open.
  private enum PhaseEnding: Sendable {
    case answered(ChallengeResponse)
    /// Its time is over, and nobody is touching the panel.
    case over
    /// The same, but the button was stuck or gone: the LED may have said that instead.
    case disturbed
  }

  private enum Turn: Sendable {
    case event(PanelEvent)
    case timeIsOver
  }

  /// One phase. What a finger does that came in its time belongs to it, however long that takes.
  /// - Parameters:
  ///   - trouble: what was written down last. It lasts, and each phase hears of it anew.
  ///   - time: returns when the phase's time is over.
  private func pass(
    _ pending: PendingMobileAuthRequest, _ prompt: Prompt, _ touch: Touch, _ trouble: inout PanelEvent?,
    while time: @escaping @Sendable () async -> Void, take: @Sendable (Gesture) -> ChallengeResponse?
  ) async throws -> PhaseEnding {
    try Task.checkCancellation()
    let (turns, teller) = AsyncStream.makeStream(of: Turn.self)
    let events = panel.events(for: prompt)
    return try await withThrowingDiscardingTaskGroup(returning: PhaseEnding.self) { group in
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
      for await turn in turns {
        switch turn {
        case .event(.gesture(let gesture)): if let response = take(gesture) { return .answered(response) }
        case .event(let event) where event == trouble: isDisturbed = true
        case .event(let event):
          try heed(event, pending, touch)
          switch event {
          case .stuck, .unavailable:
            trouble = event
            isDisturbed = true
          case .touched, .released, .gesture, .entered: trouble = nil
          }
        case .timeIsOver: isOver = true
        }
        if isOver, !touch.isHeld { return isDisturbed ? .disturbed : .over }
      }
      try await rearm(touch)
      return .disturbed
    }
  }
}
