import Secrets
import Synchronization

/// From `announced` to a person's answer, or to whatever came first.
extension Handler {
  enum Ending: Sendable {
    case answered(SealedResponse)
    case expired
    /// No longer in the pending list.
    case closed
    /// A newer request came while nobody had touched this one.
    case preempted
    case refused(TokenServerFault)
  }

  /// - Parameter isPinned: nothing newer takes its place, touched or not.
  func decide(
    _ pending: PendingMobileAuthRequest, at server: any TokenServer, isPinned: Bool
  ) async throws -> Ending {
    let touch = Touch(isPinned: isPinned)
    return try await withThrowingTaskGroup(of: Ending.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        try await timekeeper.sleep(until: pending.deadline)
        return .expired
      }
      group.addTask { try await watch(pending, touch) }
      group.addTask { try await ask(pending, at: server, touch, isFirst: !isPinned) }
      guard let first = try await group.next() else { throw CancellationError() }
      return first
    }
  }

  /// Waits for something in the inbox that takes the request away from the panel. A request that a person is
  /// touching is pinned: only its own end takes it away.
  private func watch(_ pending: PendingMobileAuthRequest, _ touch: Touch) async throws -> Ending {
    while true {
      let generation = inbox.generation
      if !inbox.contains(pending.transaction) { return .closed }
      let isFirst = nextRequest?.transaction == pending.transaction && !isErrandDue
      if !isFirst, !touch.keepsRequest { return .preempted }
      try await inbox.change(beyond: generation)
    }
  }

  private func ask(
    _ pending: PendingMobileAuthRequest, at server: any TokenServer, _ touch: Touch, isFirst: Bool
  ) async throws -> Ending {
    let announced = timekeeper.now
    async let opened = open(pending, at: server)
    // While the request is on its way: a card takes as long for a durable line as the network for an answer.
    if isFirst { try record(.announced, pending) }
    let request: MobileAuthRequest
    do { request = try await opened } catch let fault as TokenServerFault { return .refused(fault) }
    try record(.opened, pending, request.contents.type)
    if let challenge = request.contents.challenge.pin { report(.counted(pending.account, challenge.counts)) }
    if !panel.canType, case .choice(let challenge) = request.contents.challenge, challenge.pin == nil {
      let response = try await choose(from: challenge, of: request, touch, since: announced)
      return await seal(response, at: server)
    }
    var chosen: String?
    var slips = 0
    while true {
      let (indication, prompt) = Self.words(for: request.contents.challenge, chosen: chosen)
      await panel.show(indication)
      let act = try await act(on: prompt, pending, touch) { event in
        Self.act(event, on: request, chosen: chosen, after: timekeeper.now - announced, makeIdempotencyKey)
      }
      switch act {
      case .answered(let response): return await seal(response, at: server)
      case .chosen(let option): chosen = option
      case .noSuchChoice:
        await panel.show(.noSuchChoice)
        slips += 1
        if case .choice(let challenge) = request.contents.challenge, slips == challenge.slipsAllowed {
          return .refused(.answerInvalid("what was typed \(slips) times cannot be what the portal shows"))
        }
      }
    }
  }

  /// What a person did that moves the request on.
  private enum Act {
    case answered(ChallengeResponse)
    /// And the PIN is wanted next.
    case chosen(String)
    case noSuchChoice
  }

  private static func act(
    _ event: PanelEvent, on request: MobileAuthRequest, chosen: String?, after delay: Duration,
    _ makeIdempotencyKey: () -> String
  ) -> Act? {
    switch event {
    case .gesture(let gesture):
      return request.answered(by: gesture, after: delay, idempotencyKey: makeIdempotencyKey()).map(Act.answered)
    case .entered(let typed):
      var (pin, option): (PIN?, String?) = (typed, chosen)
      if case .choice(let challenge) = request.contents.challenge, chosen == nil {
        guard let choice = challenge.option(typed: typed) else { return .noSuchChoice }
        if challenge.pin != nil { return .chosen(choice) }
        (pin, option) = (nil, choice)
      }
      return request.answered(
        by: Gesture(.enter, held: .zero), typing: pin, choosing: option, after: delay,
        idempotencyKey: makeIdempotencyKey()
      ).map(Act.answered)
    case .touched, .released, .stuck, .unavailable: return nil
    }
  }

  /// Waits for what `take` makes something of.
  private func act(
    on prompt: Prompt, _ pending: PendingMobileAuthRequest, _ touch: Touch, take: (PanelEvent) -> Act?
  ) async throws -> Act {
    for await event in panel.events(for: prompt) {
      if let act = take(event) { return act }
      try heed(event, pending, touch)
    }
    // The stream only ends without a gesture when this task was cancelled.
    throw CancellationError()
  }

  /// What hands do short of an answer.
  func heed(_ event: PanelEvent, _ pending: PendingMobileAuthRequest, _ touch: Touch) throws(CustodyFault) {
    switch event {
    case .touched: touch.isHeld = true
    case .released: touch.isHeld = false
    case .stuck:
      touch.isHeld = false
      try record(.buttonStuck, pending)
    case .unavailable(let why): try record(.panelUnavailable, pending, why)
    case .entered, .gesture: break
    }
  }

  private static func words(for challenge: Challenge, chosen: String?) -> (Indication, Prompt) {
    switch challenge {
    case .confirmation: (.confirmationWanted, .confirmation)
    case .pin(let challenge): (.pinWanted, .digits(count: challenge.length))
    case .choice(let challenge):
      if let pin = challenge.pin, chosen != nil {
        (.pinWanted, .digits(count: pin.length))
      } else {
        (.numberWanted, .digits(count: challenge.digitCount))
      }
    // A PIN would accept it, or something even stronger.
    case .impossible: (.pinWanted, .denial)
    }
  }

  /// Here the PIN is used, and let go.
  private func seal(_ response: ChallengeResponse, at server: any TokenServer) async -> Ending {
    await panel.show(.talkingToServer)
    do { return .answered(try await server.seal(response)) } catch { return .refused(error) }
  }

  private func open(_ pending: PendingMobileAuthRequest, at server: any TokenServer) async throws -> MobileAuthRequest {
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, random: random)
    while true {
      do { return try await server.open(pending) } catch {
        guard error.effect == .retry else { throw error }
        try Task.checkCancellation()
        report(.retrying(pending.transaction, error))
        await panel.show(.disconnected)
        try await timekeeper.sleep(until: timekeeper.now + retry.next())
      }
    }
  }
}

/// Whether a person is touching the panel right now, as the inbox watcher sees it.
final class Touch: Sendable {
  private let isPinned: Bool
  private let held = Atomic(false)

  init(isPinned: Bool) { self.isPinned = isPinned }

  var isHeld: Bool {
    get { held.load(ordering: .acquiring) }
    set { held.store(newValue, ordering: .releasing) }
  }

  /// Whether nothing newer may take the request's place.
  var keepsRequest: Bool { isPinned || isHeld }
}
