// SPDX-License-Identifier: Apache-2.0
import Testing
import Threads

@Suite("Time limit for poll(2)", .timeLimit(.minutes(5))) struct PollTimeoutTests {
  static let limits: [(Duration, Int32)] = [
    (.zero, 0), (.nanoseconds(1), 1), (.milliseconds(1), 1), (.microseconds(1500), 2), (.seconds(15), 15_000),
    (.nanoseconds(-1), 0), (.seconds(-2), 0), (.milliseconds(Int32.max), .max), (.seconds(1 << 40 as Int64), .max),
    (.seconds(Int64.max), .max), (.seconds(Int64.min), 0),
    (Duration(secondsComponent: 9_223_372_036_854_775, attosecondsComponent: 999_999_999_999_999_999), .max),
  ]

  @Test("Is rounded up and clamped", arguments: limits)
  func isRoundedUpAndClamped(time: Duration, milliseconds: Int32) {
    #expect(time.pollMilliseconds == milliseconds)
  }
}
