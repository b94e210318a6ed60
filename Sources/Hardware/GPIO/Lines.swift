// SPDX-License-Identifier: Apache-2.0
/// The pull resistor that the chip applies to an undriven line. Not every chip supports it.
package enum Bias: String, Sendable, CaseIterable {
  case asIs = "as-is"
  case disabled
  case pullUp = "pull-up"
  case pullDown = "pull-down"
}

/// An input line as configured in a board profile.
package struct InputLine: Sendable, Equatable {
  /// The offset within the chip. The chip's label and this offset identify a line.
  package var offset: Int
  /// The expected name of the line; nil where the device tree gives no names.
  package var name: String?
  package var bias: Bias
  /// Whether the line is active while low, as with a contact to ground.
  package var isActiveLow: Bool
  /// The debouncing window, within `Debouncer.windows`.
  package var debounce: Duration

  package init(
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

/// An output line as configured in a board profile.
package struct OutputLine: Sendable, Equatable {
  package var offset: Int
  package var name: String?
  package var isActiveLow: Bool

  package init(offset: Int, name: String? = nil, isActiveLow: Bool = false) {
    self.offset = offset
    self.name = name
    self.isActiveLow = isActiveLow
  }
}

/// An event of an input. Times are on CLOCK_MONOTONIC, since its beginning.
package enum InputEvent: Sendable, Equatable {
  /// The line can be read from now on. When it took its present level is unknown.
  case opened(isActive: Bool, at: Duration)
  /// A settled edge.
  case edge(isActive: Bool, at: Duration)
  /// The state of the line is unknown until the next `opened`.
  case unavailable(GPIOError)
}
