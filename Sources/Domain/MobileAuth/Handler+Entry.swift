// SPDX-License-Identifier: Apache-2.0
import Secrets

/// The prompts of one challenge, and what the user enters in them.
extension Handler {
  /// A user input that advances the request.
  enum UserInput {
    case answered(ChallengeResponse)
    /// An option was chosen, and the PIN is required next.
    case chosen(String)
    /// The user wants to type the PIN in place of another authenticator's code.
    case pinInstead
    case noSuchChoice
  }

  /// What the user has entered for one challenge before the last entry.
  struct EntryProgress {
    /// The option that was chosen; nil for none.
    var chosen: String?
    /// Whether the PIN is typed in place of another authenticator's code.
    var isFallback = false
  }

  /// After the PIN was asked for, only the PIN is asked for until the request ends: the user may type it without a look
  /// at the LED, and the digits of a code are sent to the server.
  /// - Returns: nil if the challenge wants a code and allows no PIN.
  func initialProgress(of request: MobileAuthRequest) -> EntryProgress? {
    guard case .custom(let challenge) = request.contents.challenge,
      inbox.pending.wasPINAsked(request.pending.transaction)
    else { return EntryProgress() }
    return challenge.fallback == nil ? nil : EntryProgress(isFallback: true)
  }

  /// What answers a challenge together with a gesture.
  struct CompletedEntry {
    var pin: PIN?
    var code: EnteredDigits?
    var option: String?
  }

  /// - Parameter answer: the response of a gesture and an entry; nil if they do not answer the challenge.
  static func input(
    _ event: PanelEvent, on request: MobileAuthRequest, _ progress: EntryProgress,
    answer: (Gesture, CompletedEntry) -> ChallengeResponse?
  ) -> UserInput? {
    switch event {
    case .gesture(let gesture): return answer(gesture, CompletedEntry()).map(UserInput.answered)
    case .entered(let digits):
      let enter = Gesture(.enter, held: .zero)
      switch request.contents.challenge {
      case .choice(let challenge) where progress.chosen == nil:
        guard let option = challenge.option(typed: digits) else { return .noSuchChoice }
        guard challenge.pin == nil else { return .chosen(option) }
        return answer(enter, CompletedEntry(option: option)).map(UserInput.answered)
      case .custom where !progress.isFallback:
        return answer(enter, CompletedEntry(code: digits)).map(UserInput.answered)
      case .pin, .choice, .custom:
        return answer(enter, CompletedEntry(pin: PIN(digits), option: progress.chosen)).map(UserInput.answered)
      case .confirmation, .impossible: return nil
      }
    case .enteredNothing:
      guard case .custom(let challenge) = request.contents.challenge, challenge.fallback != nil else { return nil }
      return .pinInstead
    case .touched, .released, .shortPress, .stuck, .unavailable: return nil
    }
  }

  static func indicationAndPrompt(
    for challenge: Challenge, _ progress: EntryProgress
  ) -> (Indication, Prompt) {
    switch challenge {
    case .confirmation: (.confirmationWanted, .confirmation)
    case .pin(let challenge): (.pinWanted, .digits(count: challenge.length))
    case .choice(let challenge):
      if let pin = challenge.pin, progress.chosen != nil {
        (.pinWanted, .digits(count: pin.length))
      } else {
        (.numberWanted, .digits(count: challenge.digitCount))
      }
    case .custom(let challenge):
      if let pin = challenge.fallback, progress.isFallback {
        (.pinWanted, .digits(count: pin.length))
      } else {
        (.numberWanted, .code(orEnterAlone: challenge.fallback != nil))
      }
    // Approval would need a PIN, or a factor that this token does not have.
    case .impossible: (.pinWanted, .denial)
    }
  }
}
