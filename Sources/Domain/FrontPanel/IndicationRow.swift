// SPDX-License-Identifier: Apache-2.0
/// One row of the table of indications: how the board shows one meaning, and the legend's text about it.
package struct IndicationRow: Sendable, Equatable {
  /// Whether `Panel.show` returns only after the pattern has been played once, so that the next indication cannot hide
  /// it.
  package enum PlaysToEnd: Sendable {
    case no
    case yes
    /// Only if another indication was shown before.
    case whenNew
    /// Unless a press or key follows when it has been played for a while: it may take long.
    case unlessPressed
  }

  package let meaning: String
  package let color: LEDColor
  /// A description of the pattern, for LEDs with one color.
  package let patternInWords: String
  package let pattern: LEDPattern
  /// The sound of the buzzer, if the board has one, when the indication begins; nil for indications that need no action
  /// by the user. Keys make no sound.
  package let sound: LEDPattern?
  package let playsToEnd: PlaysToEnd
  /// Whether the pattern is interrupted to show the number of open requests, if there are several. For indications that
  /// ask about one request, but not for those that count options, codes or attempts.
  package let countsRequests: Bool

  init(
    _ meaning: String, _ color: LEDColor, _ patternInWords: String, _ pattern: LEDPattern, sound: LEDPattern? = nil,
    playsToEnd: PlaysToEnd = .no, countsRequests: Bool = false
  ) {
    self.meaning = meaning
    self.color = color
    self.patternInWords = patternInWords
    self.pattern = pattern
    self.sound = sound
    self.playsToEnd = playsToEnd
    self.countsRequests = countsRequests
  }
}
