// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct FailureCountsTests {
  /// Each attempt that is left is a blink.
  @Test(
    "A server's counts of wrong PINs are at most 10, with the same number left if that is possible",
    arguments: [
      (3, 1, 3, 2), (10, 0, 10, 10), (11, 0, 10, 10), (100, 0, 10, 10), (100, 95, 10, 5), (100, 100, 10, 0),
      (101, 0, nil, nil), (0, 0, nil, nil), (3, 4, nil, nil), (3, -1, nil, nil),
    ] as [(Int?, Int?, Int?, Int?)])
  func countsAreLimited(max: Int?, previous: Int?, limit: Int?, left: Int?) {
    let counts = FailureCounts(max: max, previous: previous)
    #expect(counts?.max == limit && counts?.remaining == left)
  }
}
