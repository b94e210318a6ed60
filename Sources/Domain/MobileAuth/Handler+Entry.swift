// SPDX-License-Identifier: Apache-2.0
import Secrets

/// The prompts of one challenge, and what the user enters in them.
extension Handler {
  /// A user input that advances the request.
  enum UserInput {
    case answered(ChallengeResponse)
    /// An option was chosen, and the PIN is required next.
    case chosen(String)
    /// The digits that the server has signed were typed; the challenge is next.
    case readBack(EnteredDigits)
    /// Other digits were typed.
    case wrongReadBack
    /// The user, or the driver, wants the PIN in place of another authenticator.
    case pinInstead
    /// The button was held, and a driver is asked next that requires it.
    case held
    /// - Parameters:
    ///   - authenticator: its identifier.
    ///   - isFinal: whether the driver is not asked again for this request.
    case driverFailed(String, of: String, isFinal: Bool)
    /// The driver is not asked again, and the registration of its authenticator ends.
    case driverRevokes(String, of: String)
    case noSuchChoice
  }

  /// What the user has entered for one challenge before the last entry.
  struct EntryProgress {
    /// The option that was chosen; nil for none.
    var chosen: String?
    /// Whether the PIN is typed in place of another authenticator.
    var isFallback = false
    /// Whether the button was held for a driver that requires it.
    var wasHeld = false
    /// How often the driver of each authenticator failed.
    var driverFailures: [String: Int] = [:]
    /// Whether no driver is asked any more, and there is no PIN: the request can only be denied.
    var isOver = false
    /// The digits that were typed because the request has some.
    var readBack: EnteredDigits?

    /// The digits that must be typed next; nil for none. A request that cannot be approved needs none.
    func wantedReadBack(_ contents: VerifiedContents) -> EnteredDigits? {
      readBack == nil && contents.challenge.obstacle == nil ? contents.readBack : nil
    }

    /// Records a step that is done. Nothing else is one.
    mutating func note(_ step: UserInput) {
      switch step {
      case .chosen(let option): chosen = option
      case .readBack(let digits): readBack = digits
      case .pinInstead: isFallback = true
      case .held: wasHeld = true
      case .answered, .wrongReadBack, .driverFailed, .driverRevokes, .noSuchChoice: break
      }
    }
  }

  /// After the PIN was asked for, only the PIN is asked for until the request ends: the user may type it without a look
  /// at the LED, and the digits of a code are sent to the server.
  /// - Returns: nil if the challenge wants a code and allows no PIN.
  func initialProgress(of request: MobileAuthRequest) -> EntryProgress? {
    guard case .custom(let challenge) = request.contents.challenge, challenge.code != nil,
      inbox.pending.wasPINAsked(request.pending.transaction)
    else { return EntryProgress() }
    return challenge.fallback == nil ? nil : EntryProgress(isFallback: true)
  }

  /// What answers a challenge together with a gesture.
  struct CompletedEntry {
    var pin: PIN?
    var authenticator: String?
    var data: AuthenticatorData?
    var option: String?
    var underlyingError: String?
    var readBack: EnteredDigits?
  }

  /// - Parameter answer: the response of a gesture and an entry; nil if they do not answer the challenge.
  static func input(
    _ event: PanelEvent, on request: MobileAuthRequest, _ progress: EntryProgress,
    answer respond: (Gesture, CompletedEntry) -> ChallengeResponse?
  ) -> UserInput? {
    func answer(_ gesture: Gesture, _ entry: CompletedEntry) -> ChallengeResponse? {
      var entry = entry
      entry.readBack = progress.readBack
      return respond(gesture, entry)
    }
    switch event {
    case .gesture(let gesture):
      if gesture.kind == .hold, case .custom(let challenge) = request.contents.challenge, progress.takesHold(challenge),
        progress.wantedReadBack(request.contents) == nil
      {
        return .held
      }
      return answer(gesture, CompletedEntry()).map(UserInput.answered)
    case .entered(let digits):
      if let wanted = progress.wantedReadBack(request.contents) {
        return digits == wanted ? .readBack(digits) : .wrongReadBack
      }
      let enter = Gesture(.enter, held: .zero)
      switch request.contents.challenge {
      case .choice(let challenge) where progress.chosen == nil:
        guard let option = challenge.option(typed: digits) else { return .noSuchChoice }
        guard challenge.pin == nil else { return .chosen(option) }
        return answer(enter, CompletedEntry(option: option)).map(UserInput.answered)
      case .custom(let challenge) where challenge.code != nil && !progress.isFallback:
        return answer(enter, CompletedEntry(data: AuthenticatorData(digits))).map(UserInput.answered)
      case .pin, .choice, .custom:
        return answer(enter, CompletedEntry(pin: PIN(digits), option: progress.chosen)).map(UserInput.answered)
      case .confirmation, .impossible: return nil
      }
    case .enteredNothing where progress.wantedReadBack(request.contents) != nil: return nil
    case .enteredNothing:
      guard case .custom(let challenge) = request.contents.challenge, challenge.fallback != nil else { return nil }
      return .pinInstead
    case .driver(let event, let authenticator): return input(event, of: authenticator, on: request, answer: answer)
    case .touched, .released, .typing, .shortPress, .stuck, .void, .unavailable, .dark, .lit: return nil
    }
  }

  static func indicationAndPrompt(
    for contents: VerifiedContents, _ progress: EntryProgress
  ) -> (Indication, Prompt) {
    if progress.wantedReadBack(contents) != nil { return (.numberWanted, .code(orEnterAlone: false)) }
    return indicationAndPrompt(for: contents.challenge, progress)
  }

  private static func indicationAndPrompt(
    for challenge: Challenge, _ progress: EntryProgress
  ) -> (Indication, Prompt) {
    switch challenge {
    case .confirmation: (.confirmationWanted, .confirmation)
    case .pin(let challenge): (.pinWanted, .digits(count: challenge.length))
    case .choice(let challenge):
      if let pin = challenge.pin, progress.chosen != nil {
        (.pinWanted, .digits(count: pin.length))
      } else {
        (.numberWanted, .digits(counts: challenge.digitCounts))
      }
    case .custom(let challenge):
      if let pin = challenge.fallback, progress.isFallback {
        (.pinWanted, .digits(count: pin.length))
      } else if progress.isOver {
        (.pinWanted, .denial)
      } else if challenge.code != nil {
        (.numberWanted, .code(orEnterAlone: challenge.fallback != nil))
      } else {
        (
          progress.wantsHold(challenge) ? .confirmationWanted : .numberWanted,
          .authenticator(orPINOf: challenge.fallback?.length, hold: progress.takesHold(challenge))
        )
      }
    // Approval would need a PIN, or a factor that this token does not have.
    case .impossible: (.pinWanted, .denial)
    }
  }
}
