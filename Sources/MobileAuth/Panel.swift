public import Secrets

/// What a person sees and touches.
public protocol Panel: Sendable {
  /// Whether there is a keypad for it, plugged in or not.
  var canType: Bool { get }

  /// Shows a state until the next call. What says how something ended (`confirmed`, `denied`, `pinWrong`,
  /// `pinRefused`, `noSuchChoice`, `code`), and `anotherRequest`, is played to its end before this returns, so that what comes next cannot hide it;
  /// an `option` too, and a new `misconfigured` at least once.
  func show(_ indication: Indication) async

  /// So many requests are open, the one that is asked about included: from two on, what asks says so too.
  func note(openRequests count: Int) async

  /// Arms the panel for one prompt. The stream ends after a gesture or an entry, or when its consumer stops; the panel
  /// is disarmed then, and digits that were typed are wiped. Whatever was touched before this call counts for nothing.
  func events(for prompt: Prompt) -> AsyncStream<PanelEvent>
}

/// What a person is asked to do.
public enum Prompt: Sendable, Equatable {
  /// Hold to accept, press twice to deny, hold very long to report; the keypad's cancel denies too.
  case confirmation
  /// Type exactly so many digits, then Enter. Denying works as for a confirmation; a hold that would accept one means
  /// nothing here.
  case digits(count: Int)
  /// Denying works as for a confirmation; nothing accepts.
  case denial
  /// Only a very long hold does what cannot be undone; a double press and the keypad's cancel give it up.
  case veryLongHold
}

public enum PanelEvent: Sendable, Equatable {
  /// The first touch that counts: the request is pinned from here on.
  case touched
  /// The touch ended and was no gesture: the request is no longer pinned.
  case released
  case gesture(Gesture)
  /// The digits that were wanted, and Enter.
  case entered(PIN)
  /// Down for longer than anybody means it; counts for nothing until released.
  case stuck
  /// The hardware is gone or failing: nothing can be approved until it is back, which the panel notices by itself.
  case unavailable(String)
}

/// What the LED says.
public enum Indication: Sendable, Equatable {
  /// Connected to every token server; `pending` requests wait.
  case idle(pending: Int)
  case disconnected
  case confirmationWanted
  /// What is asked next is not what was asked before.
  case anotherRequest
  case pinWanted
  /// A number that the portal shows, or the position of what it shows.
  case numberWanted
  /// What was typed is none of the choices.
  case noSuchChoice
  /// What would be typed for one of the choices, where nothing can be typed.
  case option([Int])
  /// The option shown last is chosen by a hold that begins now.
  case optionOffered
  /// Digits for the portal, one after the other.
  case code([Int])
  /// Choose a PIN; `again` the second time.
  case newPINWanted(again: Bool)
  /// Something has been typed and not yet submitted. How much, it does not say.
  case entering
  /// The PIN, or what was chosen, was found wrong; so many more attempts are allowed.
  case pinWrong(remaining: Int)
  /// A new PIN breaks a rule: 1 block list, 2 sequence, 3 repeats, 4 length (9011 to 9014), 5 typed differently the
  /// second time.
  case pinRefused(rule: Int)
  /// A very long hold is wanted, for something that cannot be undone.
  case veryLongHoldWanted
  /// That press or key counts for nothing: nothing is asked, or it came too early.
  case ignored
  /// The button is down long enough to accept when released.
  case releaseToAccept
  /// The button is down long enough to report "not me" when released.
  case releaseToReport
  case talkingToServer
  case confirmed
  case denied
  case outcomeUnknown
  case mustEnrol
  /// A person has to look into the log: nothing is done any more, or this request could not be answered.
  case misconfigured
}
