// SPDX-License-Identifier: Apache-2.0
import Secrets

/// From the announcement of a request to the user's answer or the request's end.
extension Handler {
  /// The pause before a prompt is armed again that the panel ended, or before a driver is asked again that failed.
  static let rearmPause = Duration.seconds(1)

  /// How long what was recorded of a request on the panel waits for the user's decision, which then writes it too: one
  /// commit less for most requests.
  static let entryPatience = Duration.seconds(5)

  enum ChallengeOutcome: Sendable {
    /// - Parameter sealing: makes the bytes of the answer; nil if it has them.
    case answered(SealedResponse, sealing: Task<SealedResponse, any Error>? = nil)
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
      case .answered: .answered
      case .refused(let fault) where fault.effect == .askAgain || fault.effect == .retry: .answered
      case .expired: .expired
      case .closed: .closed
      case .preempted, .makesWay: .replaced
      case .refused: .refused
      }
    }
  }

  /// Asks the user for a decision, unless the request has ended. If it ends while an answer is made, there is no
  /// answer; but what was counted or deleted because of the entry is the outcome.
  /// - Parameters:
  ///   - opened: the verified request; nil to fetch it again, after an answer that did not count.
  ///   - pinEnd: until when nothing must replace this request, even if the panel is not touched.
  ///   - failure: why the last entry did not count.
  func decide(
    _ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest?, at server: any TokenServerClient,
    pinnedUntil pinEnd: MonotonicInstant, after failure: AuthenticationStep.Failure?
  ) async throws -> ChallengeOutcome {
    guard environment.now < pending.deadline else { return .expired }
    guard inbox.pending.contains(pending.transaction) else { return .closed }
    let touch = Touch(pinnedUntil: pinEnd, answer: inbox.panel.startedAnswer)
    return try await withThrowingTaskGroup(of: ChallengeOutcome.self) { group in
      // First: the LED waits for it.
      group.addTask { try await ask(pending, opened, at: server, touch, after: failure) }
      group.addTask { try await expire(pending, touch) }
      group.addTask { try await watch(pending, touch) }
      let first = await group.nextResult()
      group.cancelAll()
      while let other = await group.nextResult() {
        if case .success(.refused(let fault)) = other, fault.concernsAccount { return ChallengeOutcome.refused(fault) }
      }
      guard let first else { throw CancellationError() }
      return try first.get()
    }
  }

  /// Waits for the deadline. Writes what was recorded of the request if the user does not decide soon.
  private func expire(_ pending: PendingMobileAuthRequest, _ touch: Touch) async throws -> ChallengeOutcome {
    repeat {
      try await environment.sleep(until: min(pending.deadline, environment.now + Self.entryPatience))
    } while touch.isHeld && environment.now < pending.deadline
    if environment.now < pending.deadline { try stateStore.flush() }
    try await environment.sleep(until: pending.deadline)
    return .expired
  }

  private func ask(
    _ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest?, at server: any TokenServerClient,
    _ touch: Touch, after failure: AuthenticationStep.Failure?
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
    await begin(LastPrompt.Subject(request.contents))
    shownRequest.begin(request)
    let announced = environment.now
    if !panel.canType, case .choice(let challenge) = request.contents.challenge, challenge.pin == nil {
      reportChallenge(of: request, EntryProgress(), after: failure)
      let response = try await choose(from: challenge, of: request, touch, since: announced)
      return try await seal(response, at: server, touch)
    }
    return try await ask(request, at: server, touch, after: failure, since: announced)
  }

  /// Asks for what the request's challenge needs, step by step.
  private func ask(
    _ request: MobileAuthRequest, at server: any TokenServerClient, _ touch: Touch,
    after failure: AuthenticationStep.Failure?, since announced: MonotonicInstant
  ) async throws -> ChallengeOutcome {
    let pending = request.pending
    guard var progress = initialProgress(of: request) else {
      return .refused(.notHandleable("the token server asks for another code after the PIN was asked for"))
    }
    var (wrongEntries, failure) = (0, failure)
    while true {
      let (indication, prompt) = Self.indicationAndPrompt(for: request.contents, progress)
      if Self.takesPIN(prompt, indication, request) { inbox.pending.notePINAsked(pending.transaction) }
      reportChallenge(of: request, progress, after: failure)
      failure = nil
      await panel.show(indication)
      let questions = driverPrompts(for: request, progress)
      let act = try await awaitInput(on: prompt, asking: questions, showing: indication, pending, touch) { event in
        if noteFailure(event, beside: questions, on: request, &progress) { return nil }
        return Self.input(event, on: request, progress) { gesture, entry in
          request.answered(
            by: gesture, typing: entry.pin, with: entry.authenticator, data: entry.data, choosing: entry.option,
            readBack: entry.readBack, underlyingError: entry.underlyingError, after: environment.now - announced,
            idempotencyKey: environment.makeUUID())
        }
      }
      // The touch ended with the prompt, unless it was an answer.
      touch.isHeld = if case .answered = act { true } else { false }
      defer { inbox.changes.raise() }
      switch act {
      case .answered(let response): return try await seal(response, at: server, touch)
      case .chosen, .readBack, .pinInstead, .held:
        commit(pending, touch)
        progress.note(act)
      case .wrongReadBack:
        keep(pending, touch)
        await panel.show(.noSuchChoice)
        failure = .init(number: nil, reason: "the digits are not those that the token server has signed")
      case .driverRevokes(let why, let authenticator):
        revoke(authenticator, of: request, at: server, because: why)
        try await noteDriverFailure(why, of: authenticator, isFinal: true, on: request, &progress)
      case .driverFailed(let why, let authenticator, let isFinal):
        try await noteDriverFailure(why, of: authenticator, isFinal: isFinal, on: request, &progress)
        failure = .init(number: nil, reason: why)
      case .noSuchChoice:
        keep(pending, touch)
        await panel.show(.noSuchChoice)
        failure = .init(number: nil, reason: "the digits match no choice")
        wrongEntries += 1
        if case .choice(let challenge) = request.contents.challenge, wrongEntries == challenge.maxInvalidEntries {
          return .refused(.answerInvalid("\(wrongEntries) entries matched no number that the portal can show"))
        }
      }
    }
  }

  /// Waits until `take` returns a value for an event. Handles the other events.
  private func awaitInput(
    on prompt: Prompt, asking questions: [DriverPrompt], showing indication: Indication,
    _ pending: PendingMobileAuthRequest, _ touch: Touch, take: (PanelEvent) -> UserInput?
  ) async throws -> UserInput {
    while true {
      var last: PanelEvent?
      for await event in panel.events(for: prompt, asking: questions, in: environment) {
        last = event
        if let act = take(event) { return act }
        handleAuxiliaryEvent(event, pending, touch)
        switch event {
        case .driver(.retry, _), .driver(.failed, _): await show([.noSuchChoice, indication])
        default: break
        }
      }
      try await rearm(touch, after: last)
      await panel.show(indication)
    }
  }

  /// Before a prompt is armed again that the panel ended without an answer and without cancellation: a pause, or, if
  /// the LED was dark, the announcement of the request, which may not have been seen.
  /// - Parameter last: the last event of the prompt.
  func rearm(_ touch: Touch, after last: PanelEvent?) async throws {
    try Task.checkCancellation()
    touch.isHeld = false
    inbox.changes.raise()
    if last == .lit { return await panel.show(.anotherRequest) }
    try await environment.sleep(for: Self.rearmPause)
  }

  /// Records that a step of the answer is done.
  private func commit(_ pending: PendingMobileAuthRequest, _ touch: Touch) {
    inbox.panel.startedAnswer.commit()
    keep(pending, touch)
  }

  /// Keeps the request on the panel between two entries.
  private func keep(_ pending: PendingMobileAuthRequest, _ touch: Touch) {
    touch.keep(until: environment.now + PanelTurns.length)
    keepOnPanel(pending)
  }

  /// Records that the user is busy with the request.
  func keepOnPanel(_ pending: PendingMobileAuthRequest) {
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
    case .void(let why), .unavailable(let why), .dark(let why): record(.panelUnavailable, pending, why)
    // The user is busy with this request.
    case .driver(.retry, _): keepOnPanel(pending)
    case .entered, .enteredNothing, .gesture, .typing, .driver, .lit: break
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
