/// What the chip does to a line that nobody drives. Not every chip can.
public enum Bias: String, Sendable, CaseIterable {
  case asIs = "as-is"
  case disabled
  case pullUp = "pull-up"
  case pullDown = "pull-down"
}

/// A line that is read, as a board profile names it.
public struct InputLine: Sendable, Equatable {
  /// Within its chip; this and the chip's label are what identify a line.
  public var offset: Int
  /// What the line must be called, or nil where the device tree gives no names.
  public var name: String?
  public var bias: Bias
  /// A contact to ground is active while its line is low.
  public var isActiveLow: Bool
  /// Within `Debouncer.windows`.
  public var debounce: Duration

  public init(
    offset: Int, name: String? = nil, bias: Bias = .asIs, isActiveLow: Bool = false,
    debounce: Duration = Debouncer.usualWindow
  ) {
    self.offset = offset
    self.name = name
    self.bias = bias
    self.isActiveLow = isActiveLow
    self.debounce = debounce
  }
}

/// A line that is driven, as a board profile names it.
public struct OutputLine: Sendable, Equatable {
  public var offset: Int
  public var name: String?
  public var isActiveLow: Bool

  public init(offset: Int, name: String? = nil, isActiveLow: Bool = false) {
    self.offset = offset
    self.name = name
    self.isActiveLow = isActiveLow
  }
}

/// What an input has to say. Times are on CLOCK_MONOTONIC, since its beginning.
public enum InputEvent: Sendable, Equatable {
  /// The line can be read from here on. That it is active says nothing about when it became so.
  case opened(isActive: Bool, at: Duration)
  /// A settled edge.
  case edge(isActive: Bool, at: Duration)
  /// Nothing is known of the line until `opened`.
  case unavailable(GPIOError)
}
