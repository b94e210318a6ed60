// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The button, LED and keypad.
package protocol Panel: Sendable {
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

package enum PanelEvent: Sendable, Equatable {
  /// The button is touched or digits are typed: the request stays on the panel from here on.
  case touched
  /// The touch ended without a gesture.
  case released
  /// Digits are typed, or no longer: they were submitted or wiped. Only in a prompt with the source `typing`.
  case typing(Bool)
  /// A short press that no second press followed. `released` comes next.
  case shortPress
  case gesture(Gesture)
  /// The requested digits, and Enter. A prompt for a PIN makes a `PIN` of them.
  case entered(EnteredDigits)
  /// Enter without digits, in a prompt that takes it.
  case enteredNothing
  /// Of a driver that is asked beside the panel, and the identifier of its authenticator.
  case driver(DriverEvent, of: String)
  /// Held longer than any gesture; ignored until released. It ends the touch, without `released`: while digits are
  /// typed, `touched` comes next.
  case stuck
  /// The keypad is missing or failing, and the prompt wants digits. Other inputs count.
  case unavailable(String)
  /// A press does not count, because its beginning or end was not seen, or two buttons were down.
  case void(String)
  /// The chip of button and LED is missing or failing, so that the user may not see the request: no approval is
  /// possible, also not by drivers.
  case dark(String)
  /// The LED works again. What it showed last may not have been seen, so that the prompt ends, also if the LED was dark
  /// before it.
  case lit
}
