// SPDX-License-Identifier: Apache-2.0
/// A state that the LED shows.
package enum Indication: Sendable, Equatable {
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
  /// An enrollment waits for a network, and there is no account.
  case lookingForNetwork
  /// The last enrollment failed, and there is no account: 1 no network, 2 the token server was not reached, 3 it
  /// refused or is not trusted, 4 the URI is not one of an enrollment, 5 another cause, such as the storage.
  case enrollmentFailed(cause: Int)
  /// The operator must read the log: the service has stopped, or this request could not be answered.
  case seeLog

  /// The number that the blinks of the indication count; nil if they count nothing.
  package var count: Int? {
    switch self {
    case .idle(let pending): pending
    case .pinWrong(let remaining): remaining
    case .pinRefused(let rule): rule
    case .enrollmentFailed(let cause): cause
    default: nil
    }
  }
}
