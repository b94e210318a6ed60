// SPDX-License-Identifier: Apache-2.0
import Secrets
import Synchronization

/// From the announcement of a request to the user's answer or the request's end.
extension Handler {
  enum ChallengeOutcome: Sendable {
    case answered(SealedResponse)
    case expired
    /// The request is no longer in the pending list.
    case closed
    /// A newer request of the same server arrived before the user touched the panel.
    case preempted
    /// The panel is released for other requests; this request is opened and shown again later.
    case makesWay
    case refused(TokenServerError)

    /// Why the request leaves the panel.
    var reason: ShownRequest.Ending {
      switch self {
      case .answered, .refused(.pinIncorrect): .answered
      case .expired: .expired
      case .closed: .closed
      case .preempted, .makesWay: .replaced
      case .refused: .refused
      }
    }
  }

  /// Asks the user for a decision.
  /// - Parameters:
  ///   - opened: the verified request; nil to fetch it again, after an answer that did not count.
  ///   - pinEnd: until when nothing must replace this request, even if the panel is not touched.
  func decide(
    _ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest?, at server: any TokenServerClient,
    pinnedUntil pinEnd: MonotonicInstant
  ) async throws -> ChallengeOutcome {
    let touch = Touch(pinnedUntil: pinEnd)
    return try await withThrowingTaskGroup(of: ChallengeOutcome.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        try await environment.sleep(until: pending.deadline)
        return .expired
      }
      group.addTask { try await watch(pending, touch) }
      group.addTask { try await ask(pending, opened, at: server, touch) }
      guard let first = try await group.next() else { throw CancellationError() }
      return first
    }
  }

  private func ask(
    _ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest?, at server: any TokenServerClient, _ touch: Touch
  ) async throws -> ChallengeOutcome {
    let request: MobileAuthRequest
    if let opened {
      request = opened
    } else {
      do {
        guard let again = try await openAgain(pending, at: server) else { return .makesWay }
        request = again
      } catch let fault as TokenServerError { return .refused(fault) }
    }
    await begin(pending.transaction)
    shownRequest.begin(request)
    let announced = environment.now
    if !panel.canType, case .choice(let challenge) = request.contents.challenge, challenge.pin == nil {
      let response = try await choose(from: challenge, of: request, touch, since: announced)
      return await seal(response, at: server)
    }
    guard var progress = initialProgress(of: request) else {
      return .refused(.notHandleable("the token server asks for another code after the PIN was asked for"))
    }
    var wrongEntries = 0
    while true {
      let (indication, prompt) = Self.indicationAndPrompt(for: request.contents.challenge, progress)
      if indication == .pinWanted { inbox.pending.notePINAsked(pending.transaction) }
      await panel.show(indication)
      let act = try await awaitInput(on: prompt, pending, touch) { event in
        Self.input(event, on: request, progress) { gesture, entry in
          request.answered(
            by: gesture, typing: entry.pin, code: entry.code, choosing: entry.option,
            after: environment.now - announced, idempotencyKey: environment.makeUUID())
        }
      }
      switch act {
      case .answered(let response): return await seal(response, at: server)
      case .chosen(let option): progress.chosen = option
      case .pinInstead:
        keepOnPanel(pending)
        progress.isFallback = true
      case .noSuchChoice:
        await panel.show(.noSuchChoice)
        wrongEntries += 1
        if case .choice(let challenge) = request.contents.challenge, wrongEntries == challenge.maxInvalidEntries {
          return .refused(.answerInvalid("\(wrongEntries) entries matched no number that the portal can show"))
        }
      }
    }
  }

  /// Waits until `take` returns a value for an event. Handles the other events.
  private func awaitInput(
    on prompt: Prompt, _ pending: PendingMobileAuthRequest, _ touch: Touch, take: (PanelEvent) -> UserInput?
  ) async throws -> UserInput {
    while true {
      let events = panel.events(for: prompt)
      // While the user looks at the LED.
      try stateStore.flush()
      for await event in events {
        if let act = take(event) { return act }
        handleAuxiliaryEvent(event, pending, touch)
      }
      try await rearm(touch)
    }
  }

  /// Pauses before a prompt is armed again that the panel ended without an answer and without cancellation.
  func rearm(_ touch: Touch) async throws {
    try Task.checkCancellation()
    touch.isHeld = false
    try await environment.sleep(for: Self.rearmPause)
  }

  /// Records that the user is busy with the request.
  private func keepOnPanel(_ pending: PendingMobileAuthRequest) {
    inbox.pending.keepOnPanel(pending.transaction)
    inbox.pending.hold(pending.transaction)
  }

  /// Handles panel events that do not answer the challenge.
  func handleAuxiliaryEvent(_ event: PanelEvent, _ pending: PendingMobileAuthRequest, _ touch: Touch) {
    switch event {
    case .touched: touch.isHeld = true
    case .released:
      // The user is busy with this request. A stuck button is no touch.
      if touch.isHeld { keepOnPanel(pending) }
      touch.isHeld = false
      // A panel task or a chosen request may have waited for the end of the touch.
      inbox.changes.raise()
    // A request that the user leaves is not kept.
    case .shortPress: if chooseNext(after: pending) { touch.isHeld = false }
    case .stuck:
      touch.isHeld = false
      inbox.changes.raise()
      record(.buttonStuck, pending)
    case .unavailable(let why): record(.panelUnavailable, pending, why)
    case .entered, .enteredNothing, .gesture: break
    }
  }

  /// Consumes the PIN: it is released with `response`.
  private func seal(_ response: ChallengeResponse, at server: any TokenServerClient) async -> ChallengeOutcome {
    await panel.show(.talkingToServer)
    let hasEntry = response.pin != nil || response.code != nil
    do { return .answered(try await server.seal(response)) } catch {
      return .refused(hasEntry ? error : error.withoutEntry)
    }
  }

  /// Starts to fetch and verify requests in the background.
  /// - Parameter candidates: requests in the order in which they would be shown.
  /// - Returns: when to call again even if nothing has changed.
  func startOpenings(_ candidates: [PendingMobileAuthRequest]) -> MonotonicInstant? {
    openings.start(candidates, listed: Set(askable.map(\.transaction))) { pending in
      guard let server = servers[pending.server] else { throw CancellationError() }
      return try await openBeside(pending, at: server)
    }
  }

  private func openBeside(
    _ pending: PendingMobileAuthRequest, at server: any TokenServerClient
  ) async throws -> Openings.Outcome {
    record(.announced, pending)
    inbox.pending.noteAnnounced(pending)
    do {
      let request = try await open(pending, at: server) { openings.noteTrouble(pending.transaction) }
      noteOpened(request)
      return .opened(request)
    } catch let fault as TokenServerError {
      // A canceled request, or one that has left the list, has another outcome.
      guard !Task.isCancelled, inbox.pending.contains(pending.transaction) else { throw CancellationError() }
      return .ended(try refuse(pending, fault))
    }
  }

  /// - Returns: nil if the server did not respond within `Openings.patience`: the panel is released for other requests.
  private func openAgain(
    _ pending: PendingMobileAuthRequest, at server: any TokenServerClient
  ) async throws -> MobileAuthRequest? {
    let request = try await withThrowingTaskGroup(of: MobileAuthRequest?.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await open(pending, at: server) { await panel.show(.disconnected) } }
      group.addTask {
        try await environment.sleep(for: Openings.patience)
        return nil
      }
      return try await group.next() ?? nil
    }
    if let request { noteOpened(request) }
    return request
  }

  private func open(
    _ pending: PendingMobileAuthRequest, at server: any TokenServerClient, onTrouble: @Sendable () async -> Void
  ) async throws -> MobileAuthRequest {
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, in: environment)
    while true {
      do { return try await server.open(pending) } catch {
        guard error.effect == .retry else { throw error.withoutEntry }
        try Task.checkCancellation()
        environment.report(.retrying(pending.server, pending.transaction, error))
        await onTrouble()
        try await environment.sleep(for: retry.next())
      }
    }
  }
}

/// Whether the user is touching the panel now. Shared with the task that watches the inbox.
final class Touch: Sendable {
  /// Until this time nothing must replace the request, because the user has to enter something again.
  let pinEnd: MonotonicInstant
  private let held = Atomic(false)

  init(pinnedUntil pinEnd: MonotonicInstant) { self.pinEnd = pinEnd }

  var isHeld: Bool {
    get { held.load(ordering: .acquiring) }
    set { held.store(newValue, ordering: .releasing) }
  }

  /// Whether nothing must replace the request.
  func keepsRequest(at now: MonotonicInstant) -> Bool { now < pinEnd || isHeld }
}
