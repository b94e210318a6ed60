// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import OneShotCommands
import Testing

@testable import ApprovalTokenCommands

@Suite(.timeLimit(.minutes(5))) struct EnrollTests {
  @Test(
    "A URI with a lasting secret is refused as an argument",
    arguments: [
      ("pushauth://push/x", false), ("MFAUTH://totp/x?secret=A", false), (" otpauth://totp/x?secret=A", false),
      ("otpauth://pipush/x", false), ("-", true), ("approvaltoken://activate?x", true), ("pia://pipush/x", true),
      ("nonsense", true),
    ])
  func lastingSecretsAreNoArguments(uri: String, isTaken: Bool) {
    KindsOfServers.$rules.withValue(DaemonCommandLine.Rules()) {
      #expect(((try? Enroll.parse([uri])) != nil) == isTaken)
      if !isTaken {
        #expect { try Enroll.parse([uri]) } throws: { Enroll.message(for: $0).contains("enroll -") }
      }
    }
    // The daemon's program checks it.
    #expect((try? Enroll.parse([uri])) != nil)
  }
}
