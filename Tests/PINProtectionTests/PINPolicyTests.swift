// SPDX-License-Identifier: Apache-2.0
import PINProtection
import Secrets
import Testing

func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

@Suite("A PIN policy", .timeLimit(.minutes(5))) struct PINPolicyTests {
  @Test(
    "Names the rule that is broken",
    arguments: [
      ("13574", nil), ("11223", nil), ("12321", nil), ("86428", nil), ("89012", nil), ("21098", nil),
      ("12345", .sequence), ("13579", .sequence), ("97531", .sequence), ("02468", .sequence), ("98765", .sequence),
      ("11123", .repeats), ("12333", .repeats), ("12223", .repeats), ("00000", .repeats),
      ("20202", .blockListed), ("24680", nil), ("23456", .blockListed), ("99999", .blockListed),
      ("1357", .length), ("135790", .length), ("1234", .length), ("1", .length), ("11", .length),
    ] as [(String, PINRule?)])
  func namesTheRuleThatIsBroken(digits: String, rule: PINRule?) throws {
    let policy = try PINPolicy(
      length: 5, maxRepeats: 2, sequencesAllowed: false, blockList: ["20202", "23456", "99999", "135790", "1"])
    #expect(policy.violation(by: pin(digits)) == rule)
  }

  @Test("Has the error numbers of enrollment apps") func hasTheErrorNumbersOfEnrollmentApps() {
    #expect(PINRule.allCases.map(\.number) == [9011, 9012, 9013, 9014])
    #expect(PINRule.allCases.map(\.ordinal) == [1, 2, 3, 4])
  }

  @Test("Gives the same result as a simple implementation for all five-digit PINs")
  func givesTheSameResultAsASimpleImplementationForAllFiveDigitPINs() throws {
    let cases = [
      PolicyCase(maxRepeats: nil, sequences: true, blocked: []),
      PolicyCase(maxRepeats: 1, sequences: true, blocked: []),
      PolicyCase(maxRepeats: 2, sequences: false, blocked: ["12345", "00000", "81726", "11211"]),
      PolicyCase(maxRepeats: 3, sequences: true, blocked: ["55555", "5555", "555555"]),
      PolicyCase(maxRepeats: 4, sequences: false, blocked: []),
      PolicyCase(maxRepeats: 5, sequences: false, blocked: []),
    ]
    let policies = try cases.map {
      try PINPolicy(length: 5, maxRepeats: $0.maxRepeats, sequencesAllowed: $0.sequences, blockList: $0.blocked)
    }
    var differing: [String] = []
    for number in 0..<100_000 {
      let digits = String("\(100_000 + number)".dropFirst())
      let (typed, read) = (pin(digits), PolicyCase.Reading(of: digits))
      for (policy, plain) in zip(policies, cases) where policy.violation(by: typed) != plain.violation(by: read) {
        differing.append("\(digits) under \(plain)")
      }
    }
    #expect(differing.isEmpty)
  }

  /// Random PINs of up to the maximum length. Nothing overflows.
  @Test("Gives the same result for longer PINs", arguments: [6, 31, 32]) func givesTheSameResultForLongerPINs(
    length: Int
  ) throws {
    let long = PolicyCase(maxRepeats: length - 1, sequences: false, blocked: [String(repeating: "7", count: length)])
    let policy = try PINPolicy(
      length: length, maxRepeats: long.maxRepeats, sequencesAllowed: false, blockList: long.blocked)
    for digit in "0123456789" {
      let same = String(repeating: digit, count: length)
      #expect(policy.violation(by: pin(same)) == (digit == "7" ? .blockListed : .repeats))
      #expect(policy.violation(by: pin("\(digit == "1" ? 2 : 1)" + same.dropFirst())) == nil)
    }
  }

  @Test("Is rejected with bounds that no PIN can satisfy") func isRejectedWithBoundsThatNoPINCanSatisfy() {
    #expect(throws: PINPolicy.PolicyError.length(4)) { try PINPolicy(length: 4) }
    #expect(throws: PINPolicy.PolicyError.length(33)) { try PINPolicy(length: 33) }
    #expect(throws: PINPolicy.PolicyError.maxRepeats(0)) { try PINPolicy(length: 5, maxRepeats: 0) }
    for text in ["", "1234x", "１２３４５", "12 45"] {
      #expect(throws: PINPolicy.PolicyError.blockListEntry(1)) { try PINPolicy(length: 5, blockList: ["00000", text]) }
    }
    #expect(throws: PINPolicy.PolicyError.blockListTooLong(10_001)) {
      try PINPolicy(length: 5, blockList: Array(repeating: "00000", count: 10_001))
    }
  }
}

/// A simple implementation of the rules that does not hide the digits.
struct PolicyCase: Sendable {
  let maxRepeats: Int?
  let sequences: Bool
  let blocked: [String]

  /// The properties of a PIN that the rules check, computed once for all cases.
  struct Reading {
    let text: String
    let isSequence: Bool
    let longestRun: Int

    init(of text: String) {
      self.text = text
      let digits = text.utf8.map { Int($0) }
      let step = digits[1] - digits[0]
      isSequence = step != 0 && (1..<digits.count).allSatisfy { digits[$0] - digits[$0 - 1] == step }
      var (run, longest) = (1, 1)
      for index in 1..<digits.count {
        run = digits[index] == digits[index - 1] ? run + 1 : 1
        longest = max(longest, run)
      }
      longestRun = longest
    }
  }

  func violation(by pin: Reading) -> PINRule? {
    if blocked.contains(pin.text) { return .blockListed }
    if !sequences, pin.isSequence { return .sequence }
    return pin.longestRun > maxRepeats ?? .max ? .repeats : nil
  }
}
