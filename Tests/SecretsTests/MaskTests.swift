// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct Masks {
  @Test("Answer every question about two bytes") func answerEveryQuestionAboutTwoBytes() {
    var wrong: [(UInt8, UInt8)] = []
    for one in UInt8.min ... .max {
      for other in UInt8.min ... .max {
        let right =
          mask(one, is: other) == (one == other ? 0xFF : 0)
          && mask(one, isLessThan: other) == (one < other ? 0xFF : 0)
          && (one > other || mask(97, isIn: one...other) == ((one...other).contains(97) ? 0xFF : 0))
        if !right { wrong.append((one, other)) }
      }
      #expect(select(0xFF, one, else: ~one) == one)
      #expect(select(0, one, else: ~one) == ~one)
    }
    #expect(wrong.isEmpty)
  }
}
