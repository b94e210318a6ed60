// SPDX-License-Identifier: Apache-2.0

/// One line of `follow-board`: what a simulated board shows, as it is now and after each change.
package struct BoardState: Codable, Sendable {
  package var led: LEDStatus
  /// When the LED or the buzzer changed: milliseconds since 1970, by the token's clock.
  package var atMilliseconds: Int64
  /// The LED's pattern in words.
  package var pattern: String
  /// What the user can do.
  package var advice: String
  package var isSounding: Bool
  /// Whether the chip with the buttons, the LED and the buzzer is plugged in.
  package var isChipConnected: Bool
  /// Nil for a board without a keypad.
  package var isKeypadConnected: Bool?
  /// How long a press lasts that approves, and one that reports "not me".
  package var acceptHoldMilliseconds: Int64
  package var reportHoldMilliseconds: Int64

  package init(
    led: LEDStatus, atMilliseconds: Int64, pattern: String, advice: String, isSounding: Bool, isChipConnected: Bool,
    isKeypadConnected: Bool?, acceptHoldMilliseconds: Int64, reportHoldMilliseconds: Int64
  ) {
    self.led = led
    self.atMilliseconds = atMilliseconds
    self.pattern = pattern
    self.advice = advice
    self.isSounding = isSounding
    self.isChipConnected = isChipConnected
    self.isKeypadConnected = isKeypadConnected
    self.acceptHoldMilliseconds = acceptHoldMilliseconds
    self.reportHoldMilliseconds = reportHoldMilliseconds
  }

  enum CodingKeys: String, CodingKey {
    case led, pattern, advice
    case atMilliseconds = "at_ms"
    case isSounding = "sounding"
    case isChipConnected = "chip_connected"
    case isKeypadConnected = "keypad_connected"
    case acceptHoldMilliseconds = "accept_hold_ms"
    case reportHoldMilliseconds = "report_hold_ms"
  }
}
