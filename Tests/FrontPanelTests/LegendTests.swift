// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import Glibc
import MobileAuth
import Testing

@Suite("The table of indications", .timeLimit(.minutes(5))) struct LegendTests {
  @Test("Each meaning has one row") func eachMeaningHasOneRow() {
    let meanings = Indication.legend.map(\.row.meaning)
    #expect(Set(meanings).count == meanings.count)
  }

  @Test("The documentation contains the table") func documentationContainsTheTable() throws {
    let stream = try #require(fopen("docs/led.md", "re"))
    defer { fclose(stream) }
    var text = [UInt8](repeating: 0, count: 65_536)
    let count = fread(&text, 1, text.count, stream)
    #expect(String(decoding: text[..<count], as: UTF8.self).contains("\n\n" + Indication.legendTable + "\n\n"))
  }

  @Test("The words describe the pattern", arguments: Indication.legend)
  func wordsDescribeThePattern(indication: Indication) throws {
    let row = indication.row
    let isDescribed = try #require(PatternLook.words[row.patternInWords], "unknown words")
    let look = PatternLook(row.pattern)
    #expect(isDescribed(look), "\(row.patternInWords): \(look)")
  }

  @Test("An indication returns when it may be replaced", arguments: Indication.legend)
  func returnsWhenItMayBeReplaced(indication: Indication) async throws {
    let clock = ManualClock()
    let panel = FrontPanel(button: TestButton(), indicator: TestIndicator(), clock: clock)
    if indication.row.playsToEnd != .no {
      let showing = Task {
        await panel.show(indication)
        return clock.now
      }
      // The LED and the panel.
      await clock.untilAsleep(2)
      let end = clock.now + indication.pattern.length
      clock.advance(by: indication.pattern.length - .milliseconds(1))
      for _ in 0..<100 { await Task.yield() }
      clock.advance(by: .milliseconds(1))
      #expect(try await showing.finished() == end)
    }
    if indication.row.playsToEnd == .no || indication.row.playsToEnd == .whenNew {
      let before = clock.now
      await panel.show(indication)
      #expect(clock.now == before)
    }
  }

  @Test("A count of requests is shown only with patterns that repeat", arguments: Indication.legend)
  func countIsShownOnlyWithPatternsThatRepeat(indication: Indication) {
    #expect((indication.pattern(openRequests: 2) != indication.pattern) == indication.row.countsRequests)
    if indication.row.countsRequests { #expect(PatternLook(indication.pattern).repeats) }
  }
}

/// What an observer sees of a pattern: the flashes of one round, in milliseconds.
private struct PatternLook {
  var starts: [Int] = []
  var lit: [Int] = []
  let length: Int
  let repeats: Bool

  init(_ pattern: LEDPattern) {
    length = Int(pattern.length.milliseconds)
    for moment in 0..<length where pattern.isLit(after: .milliseconds(moment)) {
      if let start = starts.last, let last = lit.last, start + last == moment {
        lit[lit.count - 1] += 1
      } else {
        starts.append(moment)
        lit.append(1)
      }
    }
    repeats = length == 0 || pattern.isLit(after: .milliseconds(length + (starts.first ?? 0)))
  }

  private func blinks(_ hertz: Int) -> Bool { repeats && length == 1000 / hertz && lit == [500 / hertz] }

  private func flashes(_ lit: [Int], repeating: Bool) -> Bool { self.lit == lit && repeats == repeating }

  private func isLitExcept(_ dark: Int, every period: Int) -> Bool {
    flashes([period - dark], repeating: true) && length == period && dark <= 200
  }

  /// Flickers at 8 Hz until about `end`, then blinks slower `count` times.
  private func flickers(until end: Int, thenBlinks count: Int, repeating: Bool = false) -> Bool {
    let fast = lit.prefix { $0 == 62 }.count
    let spacings = zip(starts[..<fast], starts[1..<fast]).map { $1 - $0 }
    return repeats == repeating && starts.first == 0 && spacings.allSatisfy { $0 == 124 } && abs(fast * 124 - end) < 62
      && Array(lit[fast...]) == [Int](repeating: 300, count: count)
  }

  /// Whether the words describe the pattern of the legend's example.
  static let words: [String: @Sendable (PatternLook) -> Bool] = [
    "solid": { $0.length == 0 },
    "0.5 Hz": { $0.flashes([1_000], repeating: true) && $0.length == 2_000 },
    "1 Hz": { $0.blinks(1) }, "2 Hz": { $0.blinks(2) }, "4 Hz": { $0.blinks(4) },
    "8 Hz for 0.5 s": { $0.flickers(until: 500, thenBlinks: 0) },
    "8 Hz for 1.5 s, then n blinks": { $0.flickers(until: 1_500, thenBlinks: 2) },
    "8 Hz for 0.5 s, then n blinks": { $0.flickers(until: 500, thenBlinks: 1) },
    "8 Hz for 0.5 s, then n blinks, repeating": { $0.flickers(until: 500, thenBlinks: 1, repeating: true) },
    "blip every 10 s (n blips = n pending, at most 5)": { $0.flashes([60], repeating: true) && $0.length == 10_000 },
    "blip every 2 s": { $0.flashes([60], repeating: true) && $0.length == 2_000 },
    "dark for 1 s, then 3 flashes of 0.1 s": {
      $0.flashes([100, 100, 100], repeating: false) && $0.starts.first == 1_000
    },
    "double blink": { $0.flashes([150, 150], repeating: true) },
    "triple blink": { $0.flashes([150, 150, 150], repeating: true) },
    "double blink, 1 long": { $0.flashes([150, 150, 500], repeating: true) },
    "double blink, 2 long": { $0.flashes([150, 150, 500, 500], repeating: true) },
    "4 short, repeating": { $0.flashes([150, 150, 150, 150], repeating: true) },
    "5 short, repeating": { $0.flashes([150, 150, 150, 150, 150], repeating: true) },
    "2 flickers": { $0.flashes([60, 60], repeating: false) },
    "2 long": { $0.flashes([600, 600], repeating: false) },
    "3 long": { $0.flashes([600, 600, 600], repeating: false) },
    "slow and fast alternating": { $0.flashes([600, 150, 150], repeating: true) },
    "solid, dark for an instant every second": { $0.isLitExcept(100, every: 1_000) },
    "solid, dark for an instant every 2 s": { $0.isLitExcept(200, every: 2_000) },
    // 4 and 2; 2 and 0, twice.
    "each digit as that many blinks, 0 as one long": {
      $0.flashes([Int](repeating: 300, count: 6), repeating: false)
    },
    "each digit as that many blinks, 0 as one long, all twice": {
      $0.flashes([300, 300, 1_200, 300, 300, 1_200], repeating: false)
    },
  ]
}
