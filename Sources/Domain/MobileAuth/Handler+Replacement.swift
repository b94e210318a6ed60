// SPDX-License-Identifier: Apache-2.0
/// Which request has the panel, while one is there.
extension Handler {
  /// Waits for a change of the inbox that removes the request from the panel. While the user touches the panel, only
  /// the request's own end removes it. A request that the user chose replaces it in any case.
  func watch(_ pending: PendingMobileAuthRequest, _ touch: Touch) async throws -> ChallengeOutcome {
    while true {
      let generation = inbox.changes.generation
      if !inbox.pending.contains(pending.transaction) { return .closed }
      if inbox.panel.choice.takeLeft(pending.transaction) { return .makesWay }
      endUnseenRequests(except: pending.transaction)
      if stateStore.queueLength > Self.longestQueue, !touch.isHeld { try stateStore.flush() }
      let newer = Array(ranked.prefix { $0.transaction != pending.transaction })
      let nextOpening = startOpenings(newer)
      if let outcome = replacement(of: pending, by: newer, touch) { return outcome }
      let open = askable
      await panel.note(openRequests: open.count)
      let nextEnd = open.count > 1 ? open.map(\.deadline).min() : nil
      let wakes = [
        nextOpening, nextEnd, nextTurn(without: pending, touch), inbox.nextExpiry(except: pending.transaction),
      ]
      try await inbox.change(beyond: generation, until: wakes.compactMap(\.self).min())
    }
  }

  /// Whether another request or a panel task replaces this request now, and how. A newer request of the same server
  /// does so at most once, and never after a touch. A request of another server does so as the servers have their
  /// turns, and not within `PanelTurns.length` after a touch.
  /// - Parameter newer: the requests that are shown before this one.
  private func replacement(
    of pending: PendingMobileAuthRequest, by newer: [PendingMobileAuthRequest], _ touch: Touch
  ) -> ChallengeOutcome? {
    let now = environment.now
    if !touch.isHeld, let chosen = newer.first, chosen.transaction == inbox.panel.choice.chosen(at: now),
      openings.isOpened(chosen.transaction)
    {
      return .makesWay
    }
    guard !touch.keepsRequest(at: now) else { return nil }
    if isPanelTaskDue { return .makesWay }
    guard inbox.pending.holdEnd(of: pending.transaction) == nil,
      let next = newer.first(where: { openings.isOpened($0.transaction) })
    else { return nil }
    guard next.server == pending.server else { return .makesWay }
    return inbox.pending.keepsPanel(pending.transaction) ? nil : .preempted
  }

  /// When this request can be replaced even without a change of the inbox: at the end of a hold, of a choice, or of its
  /// server's turn. Nil if no other request waits.
  private func nextTurn(without pending: PendingMobileAuthRequest, _ touch: Touch) -> MonotonicInstant? {
    guard ranked.count > 1 || isPanelTaskDue else { return nil }
    let now = environment.now
    let ends = [
      touch.pinEnd, inbox.pending.holdEnd(of: pending.transaction), inbox.panel.choice.end(at: now),
      inbox.panel.turns.end(at: now),
    ]
    return ends.compactMap(\.self).filter { $0 > now }.min()
  }

  /// Keeps the request on the panel after an entry that did not count.
  /// - Returns: until when not even a panel task interrupts it.
  func keepAfterWrongEntry(_ pending: PendingMobileAuthRequest) -> MonotonicInstant {
    inbox.panel.startedAnswer.end()
    inbox.pending.keepOnPanel(pending.transaction)
    return environment.now + PanelTurns.length
  }
}
