// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct DurationTests {
  @Test("Durations of any length are whole milliseconds", arguments: [Int64.max, .min, 0, 1])
  func millisecondsSaturate(seconds: Int64) {
    let expected = seconds.multipliedReportingOverflow(by: 1000)
    #expect(
      Duration.seconds(seconds).milliseconds
        == (expected.overflow ? (seconds < 0 ? .min : .max) : expected.partialValue))
  }
}
