// SPDX-License-Identifier: Apache-2.0
import Testing

/// The tests of docs/constant-time.md. Serialized: each run uses a whole core for seconds.
@Suite("In release code, the digits of a PIN", .serialized, .timeLimit(.minutes(5))) struct ConstantTimeTests {
  @Test("Affect no branch and no address between the keypad and the key derivation")
  func affectNoBranchAndNoAddressBetweenTheKeypadAndTheKeyDerivation() throws {
    let run = try ProbeRun("path")
    #expect(run.errors == 0, "\(run.log)")
    #expect(run.exitCode == 0)
    // The results are correct, and exactly the declared values were revealed, which were secret until then.
    #expect(
      run.output == [
        "typed again, the same: true",
        "typed again, another: false",
        "rule broken by 24689: 0",
        "rule broken by 24680: 1",
        "rule broken by 13579: 2",
        "rule broken by 98765: 2",
        "rule broken by 11129: 3",
        "rule broken by 55555: 3",
        "token unwrapped with the digits that were typed: true",
        "commitment, the key: true",
        "commitment, another: false",
        // Five digits.
        "revealed input of the key derivation: 5",
        // Nine PINs with 30 reports each and six keys per report.
        "revealed kind of key: 1620",
        "revealed result of the commitment: 2",
        "revealed result of the policy: 6",
        "revealed result of typing again: 2",
      ])
  }

  @Test(
    "Are detected where they do",
    arguments: [
      ("early-exit", "compareWithEarlyExit", "Conditional jump or move depends on uninitialised value(s)"),
      ("table", "lookUp", "Use of uninitialised value of size 8"),
      ("branch", "branch", "Conditional jump or move depends on uninitialised value(s)"),
      ("naive-decoder", "decodeNaively", "Conditional jump or move depends on uninitialised value(s)"),
    ])
  func areDetectedWhereTheyDo(mode: String, function: String, finding: String) throws {
    let run = try ProbeRun(mode)
    #expect(run.exitCode == ProbeRun.foundSomething)
    #expect(try #require(run.errors) > 0)
    #expect(!run.findings.isEmpty)
    // No other finding on the path is reported, so every finding is from the negative control.
    for place in run.findings { #expect(place.contains(finding) && place.contains(function), "\(place)") }
  }
}
