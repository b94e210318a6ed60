// SPDX-License-Identifier: Apache-2.0
/// Requests whose authenticators are outside of the panel.
extension Handler {
  /// How often each driver is asked for one request in spite of failures.
  static let driverAttempts = 3

  /// The drivers that are asked beside the prompt.
  func driverPrompts(for request: MobileAuthRequest, _ progress: EntryProgress) -> [DriverPrompt] {
    guard case .custom(let challenge) = request.contents.challenge,
      progress.wantedReadBack(request.contents) == nil
    else { return [] }
    let asked = progress.askedSources(of: challenge).filter { progress.wasHeld || $0.input == .external(hold: false) }
    let prompts = asked.map { source in
      DriverPrompt(
        driver: drivers.usable(source.authenticator, as: source.kind),
        call: DriverCall(
          step: .authenticate, server: challenge.server, account: request.pending.account.text,
          authenticator: source.authenticator, challenge: source.challenge, registration: source.registration),
        attempts: Self.driverAttempts - progress.driverFailures[source.authenticator, default: 0])
    }
    // One that is missing is no fault as long as another one can answer.
    let usable = prompts.filter { $0.driver != nil }
    return usable.isEmpty ? prompts : usable
  }

  /// Records the failure of a driver beside others, which are asked further, unless what the panel asks for changes.
  /// - Parameter questions: what is asked now.
  /// - Returns: whether the event was such a failure, and was recorded.
  func noteFailure(
    _ event: PanelEvent, beside questions: [DriverPrompt], on request: MobileAuthRequest,
    _ progress: inout EntryProgress
  ) -> Bool {
    guard case .driver(.failed(let why), let authenticator) = event else { return false }
    var next = progress
    next.driverFailures[authenticator, default: 0] += 1
    let others = questions.map(\.call.authenticator)
    guard questions.count > 1, others.contains(where: { next.driverFailures[$0, default: 0] < Self.driverAttempts }),
      Self.indicationAndPrompt(for: request.contents, next) == Self.indicationAndPrompt(for: request.contents, progress)
    else { return false }
    progress = next
    record(.authenticatorFailed, request.pending, "\(authenticator): \(why)")
    reportChallenge(of: request, progress, after: .init(number: nil, reason: why))
    return true
  }

  /// Whether the user may type the PIN in this prompt.
  static func takesPIN(_ prompt: Prompt, _ indication: Indication, _ request: MobileAuthRequest) -> Bool {
    if indication == .pinWanted { return true }
    guard case .custom = request.contents.challenge else { return false }
    return prompt.digitCount != nil
  }

  static func input(
    _ event: DriverEvent, of authenticator: String, on request: MobileAuthRequest,
    answer: (Gesture, CompletedEntry) -> ChallengeResponse?
  ) -> UserInput? {
    guard case .custom(let challenge) = request.contents.challenge else { return nil }
    func answered(_ kind: Gesture.Kind, _ entry: CompletedEntry) -> UserInput? {
      answer(Gesture(kind, held: .zero), entry).map(UserInput.answered)
    }
    return switch event {
    case .waiting, .retry: nil
    case .data(let data): answered(.authenticator, CompletedEntry(authenticator: authenticator, data: data))
    case .canceled(let why):
      answered(.authenticatorCancel, CompletedEntry(authenticator: authenticator, underlyingError: why))
    case .fallback:
      challenge.fallback == nil
        ? .driverFailed(
          "it wants the PIN, which this request does not allow", of: authenticator, isFinal: true) : .pinInstead
    case .failed(let why): .driverFailed(why, of: authenticator, isFinal: false)
    case .exhausted(let why, let revokes):
      revokes ? .driverRevokes(why, of: authenticator) : .driverFailed(why, of: authenticator, isFinal: true)
    }
  }

  /// Ends the registration of an authenticator. The user is busy with the request.
  func revoke(
    _ authenticator: String, of request: MobileAuthRequest, at server: any TokenServerClient, because why: String
  ) {
    keepOnPanel(request.pending)
    server.revoke(authenticator, of: request.pending.account, because: why)
  }

  /// Records that a driver failed. After its last attempt it is asked no more; without any other, the request wants the
  /// PIN, and without a PIN it can only be denied.
  func noteDriverFailure(
    _ why: String, of authenticator: String, isFinal: Bool, on request: MobileAuthRequest,
    _ progress: inout EntryProgress
  ) async throws {
    guard case .custom(let challenge) = request.contents.challenge else { return }
    record(.authenticatorFailed, request.pending, "\(authenticator): \(why)")
    await panel.show(.noSuchChoice)
    progress.driverFailures[authenticator, default: 0] += isFinal ? Self.driverAttempts : 1
    guard !progress.askedSources(of: challenge).isEmpty else {
      progress.isFallback = challenge.fallback != nil
      progress.isOver = challenge.fallback == nil
      return
    }
    if !isFinal { try await environment.sleep(for: Self.rearmPause) }
  }
}

extension Handler.EntryProgress {
  /// The authenticators outside of the panel that can still answer.
  func askedSources(of challenge: CustomChallenge) -> [AuthenticatorSource] {
    guard !isFallback, !isOver else { return [] }
    return challenge.sources.filter {
      $0.input != .keypadCode && driverFailures[$0.authenticator, default: 0] < Handler.driverAttempts
    }
  }

  /// Whether a hold of the button is wanted, after which one of the drivers is asked.
  func takesHold(_ challenge: CustomChallenge) -> Bool {
    !wasHeld && askedSources(of: challenge).contains { $0.input == .external(hold: true) }
  }

  /// Whether no driver is asked before the button is held.
  func wantsHold(_ challenge: CustomChallenge) -> Bool {
    takesHold(challenge) && askedSources(of: challenge).allSatisfy { $0.input == .external(hold: true) }
  }
}
