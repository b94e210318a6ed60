// SPDX-License-Identifier: Apache-2.0
public import Secrets

/// The button, LED and keypad.
public protocol Panel: Sendable {
  /// Whether the board has a keypad port configured, even if no keypad is plugged in.
  var canType: Bool { get }

  /// Shows a state until the next call. Returns only after some indications, such as those of an outcome, have been
  /// played once, so that the next one cannot hide them; the panel's table of indications says which.
  func show(_ indication: Indication) async

  /// Sets the number of open requests, including the one being shown. From two on, the prompts indicate that more are
  /// waiting.
  func note(openRequests count: Int) async

  /// Arms the panel for one prompt. The stream ends after a gesture or an entry, or when its consumer stops; the panel
  /// is then disarmed, and typed digits are wiped. Touches that began before this call are ignored.
  func events(for prompt: Prompt) -> AsyncStream<PanelEvent>
}

/// The input that the user is asked for.
public enum Prompt: Sendable, Equatable {
  /// Hold to approve, press twice to deny, hold very long to deny and report; the keypad's cancel key also denies.
  case confirmation
  /// Type exactly `count` digits, then Enter. Denying works as for a confirmation; a hold that would approve one is
  /// ignored.
  case digits(count: Int)
  /// Denying works as for a confirmation; approval is impossible.
  case denial
  /// A very long hold confirms an irreversible action; a double press and the keypad's cancel key abort it.
  case veryLongHold
}

public enum PanelEvent: Sendable, Equatable {
  /// The first touch of this prompt: the request stays on the panel from here on.
  case touched
  /// The touch ended without a gesture: a newer request may replace this one.
  case released
  case gesture(Gesture)
  /// The requested digits, and Enter.
  case entered(PIN)
  /// Held longer than any gesture; ignored until released.
  case stuck
  /// The hardware is missing or failing: no approval is possible until the panel detects that it is back.
  case unavailable(String)
}

/// A state that the LED shows.
public enum Indication: Sendable, Equatable {
  /// Connected to every token server; `pending` requests are waiting.
  case idle(pending: Int)
  case disconnected
  case confirmationWanted
  /// The next prompt is for another request than the previous prompt.
  case anotherRequest
  case pinWanted
  /// A number shown by the portal, or the position of an option, must be typed.
  case numberWanted
  /// The typed digits match no option.
  case noSuchChoice
  /// The digits of one option, on a board without a keypad.
  case option([Int])
  /// A hold that begins now chooses the option shown last.
  case optionOffered
  /// Digits to type into the portal, blinked one after the other.
  case code([Int])
  /// A new PIN must be chosen; `again` for the repetition.
  case newPINWanted(again: Bool)
  /// Digits have been typed and not yet submitted. The number of digits is not shown.
  case entering
  /// The PIN or the choice was wrong; `remaining` attempts are left.
  case pinWrong(remaining: Int)
  /// A new PIN violates a rule: 1 block list, 2 sequence, 3 repeated digits, 4 length (9011 to 9014), 5 the repetition
  /// differs.
  case pinRefused(rule: Int)
  /// A very long hold is required, for an irreversible action.
  case veryLongHoldWanted
  /// The press or key is ignored: no prompt is shown, or it came too early.
  case ignored
  /// The button has been held long enough to approve when released.
  case releaseToAccept
  /// The button has been held long enough to report "not me" when released.
  case releaseToReport
  case talkingToServer
  case confirmed
  case denied
  case outcomeUnknown
  case mustEnroll
  /// The operator must read the log: the service has stopped, or this request could not be answered.
  case misconfigured
}
