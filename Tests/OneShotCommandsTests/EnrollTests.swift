// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Glibc
import Testing

@testable import ApprovalTokenCommands
@testable import OneShotCommands

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

  @Test(
    "Blanks around a URI are ignored", arguments: [" approvaltoken://activate?x ", "approvaltoken://activate?x\t\r"])
  func blanks(uri: String) throws {
    #expect(try Enroll.parse([uri]).readURI() == "approvaltoken://activate?x")
  }

  @Test("A file that cannot be read is an error, and not an empty line") func unreadableFile() throws {
    let enroll = try Enroll.parse(["--file", "/tmp"])
    #expect {
      try enroll.readURI()
    } throws: {
      "\($0)" == "cannot read /tmp: Is a directory"
    }
  }

  @Test("A line of standard input is read to its end, and not further than a URI is long") func longLine() throws {
    var bytes = Array("otpauth://totp/x\r\nmore".utf8).makeIterator()
    let first = try Enroll.line { bytes.next().map { Int32($0) } ?? EOF }
    let following = bytes.next()
    #expect(first == "otpauth://totp/x\r" && following == UInt8(ascii: "m"))
    for (length, isRead) in [(16_384, true), (1 << 20, false)] {
      var count = 0
      let line = try? Enroll.line {
        count += 1
        return count <= length ? 0x61 : EOF
      }
      #expect(line?.utf8.count == (isRead ? length : nil))
      #expect(count == 16_385)
    }
  }
}
