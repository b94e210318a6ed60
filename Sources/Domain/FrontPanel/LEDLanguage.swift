// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// The table of indications. The panel, `board legend`, docs/led.md and the tests use it.
extension Indication {
  package var row: IndicationRow {
    switch self {
    case .idle(let pending):
      .init(
        "idle, connected", .dimGreen, "blip every 10 s (n blips = n pending, at most 5)",
        .flashes(min(max(pending, 1), 5), lit: 60, dark: 240, period: 10_000))
    case .disconnected:
      .init("idle, not connected", .dimRed, "blip every 2 s", .flashes(1, lit: 60, dark: 1_940, period: 2_000))
    // Dark for 1 s first, so that the pattern is distinct from the pattern before it.
    case .anotherRequest:
      .init(
        "another request", .white, "dark for 1 s, then 3 flashes of 0.1 s",
        .once(0, 1_000, 100, 100, 100, 100, 100, 100), sound: .once(0, 1_000, 100), playsToEnd: .yes)
    case .confirmationWanted:
      .init("confirmation wanted", .blue, "1 Hz", .repeating(500, 500), sound: .once(100), countsRequests: true)
    case .pinWanted:
      .init(
        "PIN wanted", .amber, "double blink", .flashes(2, lit: 150, dark: 150, period: 1_500), sound: .once(100),
        countsRequests: true)
    case .numberWanted:
      .init(
        "number or other data wanted", .violet, "triple blink", .flashes(3, lit: 150, dark: 150, period: 1_800),
        sound: .once(100), countsRequests: true)
    case .noSuchChoice:
      .init(
        "not one of the choices, or code refused", .violet, "8 Hz for 0.5 s", .once([Int64](repeating: 62, count: 8)),
        sound: .refused, playsToEnd: .yes)
    // The next indication follows directly. During a longer pause a press would still be ignored.
    case .option(let digits):
      .init(
        "one of the choices; no keypad: watch", .violet, "each digit as that many blinks, 0 as one long",
        .spelled(digits, times: 1, pause: 700), sound: .once(100), playsToEnd: .yes)
    case .optionOffered:
      .init("hold if that was what the portal shows", .violet, "2 Hz", .repeating(250, 250))
    case .code(let digits):
      .init(
        "type these digits into the portal", .violet, "each digit as that many blinks, 0 as one long, all twice",
        .spelled(digits, times: 2, pause: 3_000), sound: .once(100), playsToEnd: .unlessPressed)
    case .newPINWanted(again: false):
      .init(
        "new PIN wanted", .amber, "double blink, 1 long", .repeating(150, 150, 150, 150, 500, 900), sound: .once(100))
    case .newPINWanted(again: true):
      .init(
        "new PIN wanted, a second time", .amber, "double blink, 2 long",
        .repeating(150, 150, 150, 150, 500, 150, 500, 900), sound: .once(100))
    case .entering:
      .init(
        "digits typed: Enter submits", .amber, "solid, dark for an instant every second", .repeating(900, 100))
    case .ignored: .init("press or key ignored", .orange, "2 flickers", .once(0, 80, 60, 80, 60, 120))
    case .releaseToAccept: .init("held long enough: release to accept", .blue, "solid", .solid)
    case .releaseToReport:
      .init("held very long: release to deny and report \"not me\"", .red, "4 Hz", .repeating(125, 125))
    case .veryLongHoldWanted:
      .init(
        "very long hold wanted: it cannot be undone", .red, "solid, dark for an instant every 2 s",
        .repeating(1_800, 200), sound: .once(100))
    case .talkingToServer: .init("talking to the token server", .white, "solid", .solid)
    case .confirmed:
      .init(
        "approved, and the token server confirmed it", .green, "2 long", .once(600, 300, 600, 300), sound: .once(600),
        playsToEnd: .yes)
    case .denied:
      .init(
        "denied, and the token server confirmed it", .white, "3 long", .once(600, 300, 600, 300, 600, 300),
        sound: .once(100, 100, 100), playsToEnd: .yes)
    // 8 Hz, a pause, then the number.
    case .pinWrong(let remaining):
      .init(
        "wrong PIN or choice, n attempts left", .red, "8 Hz for 1.5 s, then n blinks",
        .counted(remaining, after: [Int64](repeating: 62, count: 23) + [600]), sound: .refused, playsToEnd: .yes)
    case .pinRefused(let rule):
      .init(
        "new PIN refused: 1 block list, 2 sequence, 3 repeats, 4 length, 5 entries differ", .red,
        "8 Hz for 0.5 s, then n blinks", .counted(rule, after: [Int64](repeating: 62, count: 7) + [600]),
        sound: .refused, playsToEnd: .yes)
    case .outcomeUnknown:
      .init(
        "outcome unknown, retrying", .orange, "slow and fast alternating", .repeating(600, 200, 150, 150, 150, 150))
    case .mustEnroll:
      .init(
        "must be enrolled (again)", .magenta, "4 short, repeating", .flashes(4, lit: 150, dark: 150, period: 2_500))
    case .lookingForNetwork: .init("looking for a network", .magenta, "0.5 Hz", .repeating(1_000, 1_000))
    case .enrollmentFailed(let cause):
      .init(
        "enrollment failed: 1 no network, 2 server not reached, 3 refused, 4 wrong URI, 5 see the log", .magenta,
        "8 Hz for 0.5 s, then n blinks, repeating",
        .counted(cause, after: [Int64](repeating: 62, count: 7) + [600]).repeated(pause: 2_000))
    case .seeLog:
      .init(
        "stopped, or a request could not be answered: see the log", .red, "5 short, repeating",
        .flashes(5, lit: 150, dark: 150, period: 2_500), playsToEnd: .whenNew)
    }
  }

  /// Every indication once, in the order of the legend.
  package static let legend: [Indication] = [
    .idle(pending: 0), .disconnected, .anotherRequest, .confirmationWanted, .pinWanted, .numberWanted, .noSuchChoice,
    .option([4, 2]), .optionOffered, .code([2, 0]), .newPINWanted(again: false), .newPINWanted(again: true), .entering,
    .ignored, .releaseToAccept, .releaseToReport, .veryLongHoldWanted, .talkingToServer, .confirmed, .denied,
    .pinWrong(remaining: 2), .pinRefused(rule: 1), .outcomeUnknown, .mustEnroll, .lookingForNetwork,
    .enrollmentFailed(cause: 1), .seeLog,
  ]

  /// The legend as a Markdown table.
  package static var legendTable: String {
    let rows = legend.map(\.row).map { "| \($0.meaning) | \($0.patternInWords) | \($0.color.rawValue) |" }
    return (["| LED says | pattern | color |", "|---|---|---|"] + rows).joined(separator: "\n")
  }
}

extension Indication {
  package var pattern: LEDPattern { row.pattern }

  /// The pattern while `count` requests are open.
  package func pattern(openRequests count: Int) -> LEDPattern {
    let row = row
    return row.countsRequests && count > 1 ? row.pattern.interrupted(by: min(count, 5)) : row.pattern
  }
}

extension LEDPattern {
  /// The sound of a wrong entry.
  fileprivate static let refused = once(60, 60, 60, 60, 60)
}
