public import MobileAuth
public import Secrets

/// One push button. Exactly one consumer is expected; edges nobody takes are dropped, the oldest first.
public protocol Button: Sendable {
  /// Debounced. Timestamps are those of the panel's timekeeper.
  var events: AsyncStream<ButtonEvent> { get }
}

public enum ButtonEvent: Sendable, Equatable {
  case down(Moment)
  case up(Moment)
  /// The line is gone; whatever was held counts for nothing.
  case unavailable(String)
}

/// One LED, one colour or three.
public protocol Indicator: Sendable {
  /// Nil is dark. A one-colour LED lights for every colour. Returns at once.
  func light(_ colour: LEDColour?)
}

/// Something that beeps while it is on.
public protocol Sounder: Sendable {
  /// Returns at once.
  func sound(_ isOn: Bool)
}

public enum LEDColour: String, Sendable, CaseIterable {
  case amber, blue, green, magenta, orange, red, violet, white
  case dimGreen = "dim green"
  case dimRed = "dim red"
}

/// A keypad. Exactly one consumer is expected.
public protocol Keypad: Sendable {
  /// Which key it was these do not say; a digit waits in `digits`, one for each `.key(.digit, …)`, in order.
  var events: AsyncStream<KeypadEvent> { get }
  var digits: DigitQueue { get }
}

public enum KeypadEvent: Sendable, Equatable {
  /// Pressed at a moment of the panel's timekeeper.
  case key(KeyKind, Moment)
  /// Unplugged or failing: what was typed counts for nothing.
  case unavailable(String)
  case available
}
