// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import FoundationEssentials
import Logging
import MobileAuth
import ServerBackends
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct EnrollmentURITests {
  /// Fails if a name may have characters that a terminal interprets.
  @Test(
    "A name has no blanks and no control, format or invisible characters",
    arguments: [
      ("ann@bank.example", true), ("Zoë", true), ("", false), (String(repeating: "x", count: 65), false),
      ("a b", false), ("a\u{1B}[2J", false), ("a\u{202E}b", false), ("a\u{200B}b", false), ("a\u{2028}b", false),
      ("a\u{3164}", false), ("a\u{34F}b", false), ("a\u{115F}b", false), ("a\u{2800}b", false),
      ("a\u{E0100}", false), ("a\u{FE0F}", false),
    ])
  func accountNames(name: String, isValid: Bool) {
    #expect(isAccountName(name) == isValid)
  }

  @Test(
    "Each kind of server recognizes its own URIs only",
    arguments: [
      ("approvaltoken://activate?x", "reference"), (" APPROVALTOKEN:x", "reference"),
      ("otpauth://pipush/x", "privacyidea"), ("pia://container/x", "privacyidea"),
      ("edumfa-push://edumfa/x", "privacyidea"), (" otpauth://totp/x", "oath"), ("OTPAUTH://hotp/x", "oath"),
      ("pushauth://push/x", "pingam"), ("mfauth://totp/x", "pingam"), ("https://example.org", nil),
      ("otpauth://push/x", nil), ("", nil),
      // Fails if a URI that is too long for one kind is thought to be of that kind.
      ("approvaltoken://activate?" + String(repeating: "x", count: 5000), "reference"),
      ("otpauth://totp/" + String(repeating: "x", count: 5000), "oath"),
      ("otpauth://pipush/" + String(repeating: "x", count: 5000), "privacyidea"),
      (String(repeating: "x", count: 5000), nil),
    ] as [(String, String?)])
  func oneKindOnly(uri: String, kind: String?) {
    #expect(Backends.kinds.filter { $0.recognizes(uri) }.map { $0.kind } == [kind].compactMap(\.self))
  }

  @Test(
    "An enrollment URI accepts only options that its kind of server lists",
    arguments: [
      ("approvaltoken://activate?server=https%3A%2F%2F127.0.0.1%3A1&code=1234567890128", [.origins]),
      ("otpauth://totp/Example:ann?secret=GEZDGNBVGY3TQOJQ&issuer=Example", [.pin]),
    ] as [(String, Set<EnrollmentOption>)])
  func optionsOfKinds(uri: String, options: Set<EnrollmentOption>) throws {
    #expect(try Backends.form(of: uri).options == options)
    let kind = try #require(Backends.kinds.first { $0.recognizes(uri) })
    #expect(options.isSubset(of: kind.enrollmentOptions))
  }

  @Test("The message about an option names the kinds of servers that accept it") func optionsOfOtherKinds() {
    var options = EnrollmentOptions(
      uri: "otpauth://totp/Example:ann?secret=GEZDGNBVGY3TQOJQ&issuer=Example")
    options.allowedOrigins = ["https://shop.example"]
    let text = "--allow-origin is for accounts of the reference token server: approvaltoken://activate?…"
    #expect { try Backends.check(options) } throws: { ($0 as? CommandError)?.description == text }
  }

  @Test("The message for another text lists how enrollment URIs begin") func otherTexts() {
    let text =
      "not an enrollment URI: one begins with approvaltoken://activate?, otpauth://pipush/, pia://pipush/, "
      + "edumfa-push://edumfa/, otpauth://totp/, otpauth://hotp/, pushauth://push/, mfauth://totp/, mfauth://hotp/ or "
      + "approvaltoken-fleet://register?"
    for uri in ["https://example.org", "otpauth://foo/x"] {
      #expect { try Backends.form(of: uri) } throws: { ($0 as? CommandError)?.description == text }
    }
  }

  /// Fails if the message about a URI of no kind says that URIs begin as this one does.
  @Test("A URI that begins as a kind of server says is of that kind alone") func beginnings() {
    for kind in Backends.kinds {
      for prefix in kind.uriPrefixes {
        #expect(Backends.kinds.filter { $0.recognizes(prefix + "x") }.map { $0.kind } == [kind.kind], "\(prefix)")
      }
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct PlainLogTests {
  @Test("A server's text becomes one log line of limited length")
  func logLinesCannotBeForged() {
    let text =
      "bad\n2026-11-22 info approval-token: approved\u{1B}[2J\u{202E}\u{85}" + String(repeating: "x", count: 500_000)
    let line = PlainLog.line(.warning, "approval-token", text, at: Date(timeIntervalSince1970: 0))
    #expect(line.hasPrefix("1970-01-01T00:00:00Z warning approval-token: bad2026-11-22 info"))
    #expect(line.unicodeScalars.count == 1000)
    #expect(!line.unicodeScalars.contains { $0.properties.generalCategory == .control || $0 == "\u{202E}" })
  }
}
