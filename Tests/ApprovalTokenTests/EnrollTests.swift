// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import FoundationEssentials
import Logging
import Testing

@testable import ApprovalToken

@Suite(.timeLimit(.minutes(5))) struct EnrollTests {
  @Test(
    "A URI with a lasting secret is refused as an argument",
    arguments: [
      ("pushauth://push/x", false), ("MFAUTH://totp/x?secret=A", false), (" otpauth://totp/x?secret=A", false),
      ("otpauth://pipush/x", false), ("-", true), ("approvaltoken://activate?x", true), ("pia://pipush/x", true),
      ("nonsense", true),
    ])
  func lastingSecretsAreNoArguments(uri: String, isTaken: Bool) {
    #expect(((try? Enroll.parse([uri])) != nil) == isTaken)
    if !isTaken {
      #expect { try Enroll.parse([uri]) } throws: { Enroll.message(for: $0).contains("enroll -") }
    }
  }

  @Test("A server's text becomes one log line of limited length")
  func logLinesCannotBeForged() {
    let text =
      "bad\n2026-11-22 info approval-token: approved\u{1B}[2J\u{202E}\u{85}" + String(repeating: "x", count: 500_000)
    let line = PlainLog.line(.warning, "approval-token", text, ["a": "b\nc"], at: Date(timeIntervalSince1970: 0))
    #expect(line.hasPrefix("1970-01-01T00:00:00Z warning approval-token: a=bc bad2026-11-22 info"))
    #expect(line.unicodeScalars.count == 1000)
    #expect(!line.unicodeScalars.contains { $0.properties.generalCategory == .control || $0 == "\u{202E}" })
  }
}
