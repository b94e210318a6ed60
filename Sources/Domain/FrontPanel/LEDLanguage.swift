// SPDX-License-Identifier: Apache-2.0
public import MobileAuth

/// The table of LED patterns, colors, sounds and meanings. The panel, `board legend` and the README use it.
extension Indication {
  public var pattern: LEDPattern {
    switch self {
    case .idle(let pending): .flashes(min(max(pending, 1), 5), lit: 60, dark: 240, period: 10_000)
    case .disconnected: .flashes(1, lit: 60, dark: 1_940, period: 2_000)
    case .confirmationWanted: .repeating(500, 500)
    // Dark for 1 s first, so that the pattern is distinct from the pattern before it.
    case .anotherRequest: .once(0, 1_000, 100, 100, 100, 100, 100, 100)
    case .ignored: .once(0, 80, 60, 80, 60, 120)
    case .pinWanted: .flashes(2, lit: 150, dark: 150, period: 1_500)
    case .numberWanted: .flashes(3, lit: 150, dark: 150, period: 1_800)
    case .noSuchChoice: .once([Int64](repeating: 62, count: 8))
    // The next indication follows directly. During a longer pause a press would still be ignored.
    case .option(let digits): .spelled(digits, times: 1, pause: 700)
    case .optionOffered: .repeating(250, 250)
    case .code(let digits): .spelled(digits, times: 2, pause: 3_000)
    case .newPINWanted(let again):
      again
        ? .repeating(150, 150, 150, 150, 500, 150, 500, 900)
        : .repeating(150, 150, 150, 150, 500, 900)
    case .entering: .repeating(900, 100)
    // 8 Hz for 1.5 s, a pause, then the number.
    case .pinWrong(let remaining): .counted(remaining, after: [Int64](repeating: 62, count: 23) + [600])
    case .pinRefused(let rule): .counted(rule, after: [Int64](repeating: 62, count: 7) + [600])
    case .veryLongHoldWanted: .repeating(1_800, 200)
    case .releaseToAccept, .talkingToServer: .solid
    case .releaseToReport: .repeating(125, 125)
    case .confirmed: .once(600, 300, 600, 300)
    case .denied: .once(600, 300, 600, 300, 600, 300)
    case .outcomeUnknown: .repeating(600, 200, 150, 150, 150, 150)
    case .mustEnroll: .flashes(4, lit: 150, dark: 150, period: 2_500)
    case .misconfigured: .flashes(5, lit: 150, dark: 150, period: 2_500)
    }
  }

  /// The pattern while several requests are open. An indication that asks about one of them is interrupted to show the
  /// number of open requests. Indications that count options, codes or attempts are not.
  public func pattern(openRequests count: Int) -> LEDPattern {
    switch self {
    case .confirmationWanted, .pinWanted, .numberWanted: count > 1 ? pattern.interrupted(by: min(count, 5)) : pattern
    default: pattern
    }
  }

  public var color: LEDColor {
    switch self {
    case .idle: .dimGreen
    case .disconnected: .dimRed
    case .confirmationWanted, .releaseToAccept: .blue
    case .pinWanted, .newPINWanted, .entering: .amber
    case .numberWanted, .noSuchChoice, .option, .optionOffered, .code: .violet
    case .releaseToReport, .veryLongHoldWanted, .pinWrong, .pinRefused, .misconfigured: .red
    case .talkingToServer, .denied, .anotherRequest: .white
    case .confirmed: .green
    case .outcomeUnknown, .ignored: .orange
    case .mustEnroll: .magenta
    }
  }

  /// The sound of the buzzer, if the board has one, when the indication begins; nil for indications that need no action
  /// by the user. Keys make no sound.
  public var sound: LEDPattern? {
    switch self {
    case .confirmationWanted, .pinWanted, .numberWanted, .option, .code, .newPINWanted, .veryLongHoldWanted: .once(100)
    case .anotherRequest: .once(0, 1_000, 100)
    case .confirmed: .once(600)
    case .denied: .once(100, 100, 100)
    case .pinWrong, .pinRefused, .noSuchChoice: .once(60, 60, 60, 60, 60)
    case .idle, .disconnected, .optionOffered, .entering, .releaseToAccept, .releaseToReport, .talkingToServer,
      .ignored, .outcomeUnknown, .mustEnroll, .misconfigured:
      nil
    }
  }

  public var meaning: String {
    switch self {
    case .idle: "idle, connected"
    case .disconnected: "idle, not connected"
    case .confirmationWanted: "confirmation wanted"
    case .anotherRequest: "another request"
    case .ignored: "press or key ignored"
    case .pinWanted: "PIN wanted"
    case .numberWanted: "number or other data wanted"
    case .noSuchChoice: "not one of the choices"
    case .option: "one of the choices; no keypad: watch"
    case .optionOffered: "hold if that was what the portal shows"
    case .code: "type these digits into the portal"
    case .newPINWanted(let again): again ? "new PIN wanted, a second time" : "new PIN wanted"
    case .entering: "digits typed: Enter submits"
    case .pinWrong: "wrong PIN or choice, n attempts left"
    case .pinRefused: "new PIN refused: 1 block list, 2 sequence, 3 repeats, 4 length, 5 entries differ"
    case .veryLongHoldWanted: "very long hold wanted: it cannot be undone"
    case .releaseToAccept: "held long enough: release to accept"
    case .releaseToReport: "held very long: release to deny and report \"not me\""
    case .talkingToServer: "talking to the token server"
    case .confirmed: "approved, and the token server confirmed it"
    case .denied: "denied, and the token server confirmed it"
    case .outcomeUnknown: "outcome unknown, retrying"
    case .mustEnroll: "must be enrolled (again)"
    case .misconfigured: "stopped, or a request could not be answered: see the log"
    }
  }

  /// A description of the pattern, for LEDs with one color.
  public var patternInWords: String {
    switch self {
    case .idle: "blip every 10 s (n blips = n pending, at most 5)"
    case .disconnected: "blip every 2 s"
    case .confirmationWanted: "1 Hz"
    case .anotherRequest: "dark for 1 s, then 3 flashes of 0.1 s"
    case .ignored: "2 flickers"
    case .pinWanted: "double blink"
    case .numberWanted: "triple blink"
    case .noSuchChoice: "8 Hz for 0.5 s"
    case .option: "each digit as that many blinks, 0 as one long"
    case .optionOffered: "2 Hz"
    case .code: "each digit as that many blinks, 0 as one long, all twice"
    case .newPINWanted(let again): again ? "double blink, 2 long" : "double blink, 1 long"
    case .entering: "solid, dark for an instant every second"
    case .pinWrong: "8 Hz for 1.5 s, then n blinks"
    case .pinRefused: "8 Hz for 0.5 s, then n blinks"
    case .veryLongHoldWanted: "solid, dark for an instant every 2 s"
    case .releaseToAccept, .talkingToServer: "solid"
    case .releaseToReport: "4 Hz"
    case .confirmed: "2 long"
    case .denied: "3 long"
    case .outcomeUnknown: "slow and fast alternating"
    case .mustEnroll: "4 short, repeating"
    case .misconfigured: "5 short, repeating"
    }
  }

  /// Every indication once, in the order of the legend.
  public static let legend: [Indication] = [
    .idle(pending: 0), .disconnected, .anotherRequest, .confirmationWanted, .pinWanted, .numberWanted, .noSuchChoice,
    .option([4, 2]),
    .optionOffered, .code([2, 0]), .newPINWanted(again: false),
    .newPINWanted(again: true), .entering, .ignored, .releaseToAccept, .releaseToReport, .veryLongHoldWanted,
    .talkingToServer,
    .confirmed, .denied, .pinWrong(remaining: 2), .pinRefused(rule: 1), .outcomeUnknown, .mustEnroll, .misconfigured,
  ]
}
