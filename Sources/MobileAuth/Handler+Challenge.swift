import Secrets
import Synchronization

/// From the first request that is announced to a person's answer, or to whatever came first.
extension Handler {
  enum Ending: Sendable {
    case answered(SealedResponse)
    case expired
    /// No longer in the pending list.
    case closed
    /// A newer request came while nobody had touched this one.
    case preempted
    /// The panel is free for others; the request is opened and asked about later.
    case makesWay
    case refused(TokenServerFault)
  }

  /// - Parameters:
  ///   - opened: nil to open it again, after an answer that was none.
  ///   - isPinned: nothing newer takes its place, touched or not.
  func decide(
    _ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest?, at server: any TokenServer, isPinned: Bool
  ) async throws -> Ending {
    let touch = Touch(isPinned: isPinned)
    return try await withThrowingTaskGroup(of: Ending.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        try await timekeeper.sleep(until: pending.deadline)
        return .expired
      }
      group.addTask { try await watch(pending, touch) }
      group.addTask { try await ask(pending, opened, at: server, touch) }
      guard let first = try await group.next() else { throw CancellationError() }
      return first
    }
  }

  /// Waits for something in the inbox that takes the request away from the panel. A request that a person is
  /// touching is pinned: only its own end takes it away. One that made way for a newer request once does not again.
  private func watch(_ pending: PendingMobileAuthRequest, _ touch: Touch) async throws -> Ending {
    while true {
      let generation = inbox.generation
      if !inbox.contains(pending.transaction) { return .closed }
      let newer = Array(ranked.prefix { $0.transaction != pending.transaction })
      let nextOpening = startOpenings(newer)
      if !touch.keepsRequest {
        if isErrandDue { return .makesWay }
        let isReady = newer.contains { openings.isOpened($0.transaction) }
        if isReady, !inbox.wasPreempted(pending.transaction) { return .preempted }
      }
      let open = askable
      await panel.note(openRequests: open.count)
      let nextEnd = open.count > 1 ? open.map(\.deadline).min() : nil
      try await inbox.change(beyond: generation, until: [nextOpening, nextEnd].compactMap(\.self).min())
    }
  }

  private func ask(
    _ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest?, at server: any TokenServer, _ touch: Touch
  ) async throws -> Ending {
    let request: MobileAuthRequest
    if let opened {
      request = opened
    } else {
      do {
        guard let again = try await openAgain(pending, at: server) else { return .makesWay }
        request = again
      } catch let fault as TokenServerFault { return .refused(fault) }
    }
    await begin(pending.transaction)
    inbox.shown = pending.transaction
    let announced = timekeeper.now
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
    while true {
      for await event in panel.events(for: prompt) {
        if let act = take(event) { return act }
        try heed(event, pending, touch)
      }
      try await rearm(touch)
    }
  }

  /// The panel ended a prompt although nothing was done and nobody canceled it: it is armed again, after a pause.
  func rearm(_ touch: Touch) async throws {
    try Task.checkCancellation()
    touch.isHeld = false
    try await timekeeper.sleep(until: timekeeper.now + Self.rearmPause)
  }

  /// What hands do short of an answer.
  func heed(_ event: PanelEvent, _ pending: PendingMobileAuthRequest, _ touch: Touch) throws(CustodyFault) {
    switch event {
    case .touched: touch.isHeld = true
    case .released:
      touch.isHeld = false
      // What came meanwhile was kept away by the touch alone.
      inbox.nudge()
    case .stuck:
      touch.isHeld = false
      inbox.nudge()
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

  /// Opens what can be put to a person, beside the panel.
  /// - Parameter candidates: in that order.
  /// - Returns: when to look again although nothing has changed.
  func startOpenings(_ candidates: [PendingMobileAuthRequest]) -> Moment? {
    openings.start(candidates, listed: Set(askable.map(\.transaction))) { pending in
      guard let server = servers[pending.server] else { throw CancellationError() }
      return try await openBeside(pending, at: server)
    }
  }

  private func openBeside(
    _ pending: PendingMobileAuthRequest, at server: any TokenServer
  ) async throws -> Openings.Outcome {
    async let opened = open(pending, at: server) { openings.noteTrouble(pending.transaction) }
    // While the request is on its way: a card takes as long for a durable line as the network for an answer.
    try record(.announced, pending)
    inbox.noteAnnounced(pending)
    do {
      let request = try await opened
      try noteOpened(request)
      return .opened(request)
    } catch let fault as TokenServerFault {
      // What was canceled, or has left the list meanwhile, ends otherwise.
      guard !Task.isCancelled, inbox.contains(pending.transaction) else { throw CancellationError() }
      return .ended(try refuse(pending, fault))
    }
  }

  /// - Returns: nil if the server was too slow: others may have the panel meanwhile.
  private func openAgain(
    _ pending: PendingMobileAuthRequest, at server: any TokenServer
  ) async throws -> MobileAuthRequest? {
    let request = try await withThrowingTaskGroup(of: MobileAuthRequest?.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await open(pending, at: server) { await panel.show(.disconnected) } }
      group.addTask {
        try await timekeeper.sleep(until: timekeeper.now + Openings.patience)
        return nil
      }
      return try await group.next() ?? nil
    }
    if let request { try noteOpened(request) }
    return request
  }

  private func noteOpened(_ request: MobileAuthRequest) throws(CustodyFault) {
    let pending = request.pending
    try record(.opened, pending, request.contents.type)
    if let challenge = request.contents.challenge.pin { report(.counted(pending.account, challenge.counts)) }
  }

  private func open(
    _ pending: PendingMobileAuthRequest, at server: any TokenServer, onTrouble: @Sendable () async -> Void
  ) async throws -> MobileAuthRequest {
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, random: random)
    while true {
      do { return try await server.open(pending) } catch {
        guard error.effect == .retry else { throw error }
        try Task.checkCancellation()
        report(.retrying(pending.transaction, error))
        await onTrouble()
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
