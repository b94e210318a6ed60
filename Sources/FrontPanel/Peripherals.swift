public import MobileAuth

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

public enum LEDColour: String, Sendable, CaseIterable {
  case amber, blue, green, magenta, orange, red, white
  case dimGreen = "dim green"
  case dimRed = "dim red"
}
