// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

/// The push button or buttons, of which one press counts at a time. For exactly one consumer. If it does not read the
/// events, the oldest are dropped.
package protocol Button: Sendable {
  /// Debounced edges. Timestamps are those of the panel's clock.
  var events: AsyncStream<ButtonEvent> { get }
}

/// What a press of a button is for.
package enum ButtonRole: Sendable {
  /// The main button: its gestures approve or deny.
  case approve
  /// The second button of some boards: every press denies.
  case deny
}

package enum ButtonEvent: Sendable, Equatable {
  case down(ButtonRole, MonotonicInstant)
  /// Ends the press that the last `down` began.
  case up(MonotonicInstant)
  /// The present press does not count, and neither does what follows until an `up`.
  case void(String)
  /// The chip of the lines and of the LED is unavailable until the next `down` or `up`. A press that was held is
  /// ignored.
  case unavailable(String)
}

/// One LED, with one or three color channels.
package protocol Indicator: Sendable {
  /// Switches the LED; nil is dark. A one-color LED lights for every color. Does not block.
  /// - Parameter context: what the LED shows, for a readable copy of it.
  func light(_ color: LEDColor?, in context: LEDContext)
}

/// What an LED shows when it is switched.
package struct LEDContext: Sendable, Equatable {
  package var indication = Indication.disconnected
  /// The number of entries submitted before, since the panel started, of a valid length or not.
  package var entries = 0

  package init() {}
}

/// A buzzer that sounds while it is on.
package protocol Sounder: Sendable {
  /// Switches the buzzer. Does not block.
  func sound(_ isOn: Bool)
}

package enum LEDColor: String, Sendable, CaseIterable {
  case amber, blue, green, magenta, orange, red, violet, white
  case dimGreen = "dim green"
  case dimRed = "dim red"
}

/// A keypad. For exactly one consumer.
package protocol Keypad: Sendable {
  var events: AsyncStream<KeypadEvent> { get }
}

package enum KeypadEvent: Sendable, Equatable {
  /// A key press, with its time on the panel's clock. Its digit is zeroed with the last copy of the event.
  case key(KeyPress, MonotonicInstant)
  /// The keypad was unplugged or fails. The typed digits are discarded.
  case unavailable(String)
  case available
}
