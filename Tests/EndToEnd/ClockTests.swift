// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// A board without a real-time clock starts in 1970.
  @Suite struct Clocks {
    @Test("A token in 1970 enrolls and approves") func aTokenIn1970EnrollsAndApproves() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      // Ten minutes after the epoch.
      let clock = try await wallClock(secondsBack: Int(Date().timeIntervalSince1970) - 600, in: folder)
      try await withScene(launcher: ["env", "LD_PRELOAD=\(clock)"]) { fixture in
        #expect(try fixture.token.log.lines.first?.hasPrefix("1970-01-01") == true)
        let transaction = try await fixture.ask()
        try await fixture.token.answer(transaction, with: .hold)
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
        #expect(try await fixture.token.command("doctor").succeeded().output.contains("days behind"))
      }
    }

    /// RFC 4226, appendix D.
    @Test("In that year a counter makes codes and time none") func inThatYearACounterMakesCodesAndTimeNone()
      async throws
    {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let clock = try await wallClock(secondsBack: Int(Date().timeIntervalSince1970) - 600, in: folder)
      let token = TestToken(
        state: folder.file("token"), board: "simulated", launcher: ["env", "LD_PRELOAD=\(clock)"])
      let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
      for kind in ["hotp", "totp"] {
        try await token.enroll("otpauth://\(kind)/ACME:\(kind)?secret=\(secret)").succeeded()
      }
      for code in ["755224", "287082"] { #expect(try await token.command("otp", "hotp").succeeded().output == code) }
      let refused = try await token.command("otp", "totp")
      #expect(refused.exit == .code(69) && refused.errors.contains("this board's clock") && refused.output.isEmpty)
    }
  }
}
