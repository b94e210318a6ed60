// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// One-time passwords, from the QR code's text to the displayed code.
  @Suite struct OneTimePasswords {
    private let secret = "IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST"
    private let codes = ["467851", "443220", "307694", "553707", "597237"]

    private func hotp(_ account: String = "alice") -> String { "otpauth://hotp/ACME:\(account)?secret=\(secret)" }

    struct Code: Decodable {
      let account: String
      let code: String
      let counter: Int?
      let validFrom: Int?
      let validUntil: Int?
    }

    private func withToken(_ body: (TestToken, TemporaryDirectory) async throws -> Void) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let board = try folder.write(QuickBoard.withKeypad, to: "board.toml")
      let token = TestToken(state: folder.file("token"), board: board)
      defer { token.end() }
      try await body(token, folder)
      #expect(try await token.provesItsLog())
    }

    @Test("A counter counts with and without the service") func aCounterCountsWithAndWithoutTheService() async throws {
      try await withToken { token, _ in
        try await token.enroll(hotp()).succeeded()
        #expect(try await token.command("otp").succeeded().output == codes[0])
        try await token.start()
        #expect(try await token.command("otp", "alice").succeeded().output == codes[1])
        let third = try await token.command("otp", "alice", "--json").decoded(Code.self)
        #expect(third.code == codes[2] && third.counter == 2 && third.validFrom == nil && third.account == "alice")
        try await token.kill9()
        #expect(try await token.command("otp").succeeded().output == codes[3])
        let shown = try await token.audit().filter { $0.kind == "code-shown" }.map(\.detail)
        #expect(shown == (0...3).map { "number \($0)" })
      }
    }

    @Test("Policies in the URI hold for its codes too") func policiesInTheURIHoldForItsCodesToo() async throws {
      try await withToken { token, folder in
        func policies(_ json: String) -> String { "&policies=\(Data(json.utf8).base64EncodedString())" }
        let biometric = try await token.enroll(hotp("bob") + policies(#"{"biometricAvailable":{}}"#))
        #expect(biometric.exit == .code(77) && biometric.errors.contains("biometricAvailable"))
        #expect(biometric.errors.contains("\"number\":6100005"))
        let odd = try await token.enroll(hotp("bob") + policies("[]"))
        #expect(odd.exit != .code(0) && odd.errors.contains("policies"))
        #expect(try await token.accounts().isEmpty)

        let known = try await token.enroll(hotp() + policies(#"{"deviceTampering":{"score":0.8},"unheardOf":{}}"#))
        #expect(try known.succeeded().errors.contains("the policy unheardOf is unknown to this token"))
        #expect(try await token.command("otp").succeeded().output == codes[0])
        let refused = try await token.edited(in: folder).command("otp")
        #expect(refused.exit == .code(77) && refused.errors.contains("deviceTampering") && refused.output.isEmpty)
      }
    }

    @Test("Time makes the code that others make") func timeMakesTheCodeThatOthersMake() async throws {
      try await withToken { token, folder in
        let uri = "otpauth://totp/ACME:bob?secret=\(secret)&algorithm=SHA256&digits=8&period=60"
        let file = try folder.write(uri + "\n", to: "uri")
        try await token.command("enroll", "--file", file, "--name", "b").succeeded()
        try await token.start()
        let code = try await token.command("otp", "b", "--json").decoded(Code.self)
        let from = try #require(code.validFrom)
        #expect(code.validUntil == from + 60 && from % 60 == 0 && abs(from - Int(Date().timeIntervalSince1970)) < 70)
        #expect(try await otherCode(at: from / 60) == code.code)
      }
    }

    /// RFC 6238, computed with the openssl command.
    private func otherCode(at factor: Int) async throws -> String {
      let script = """
        printf '\(String(format: "%016x", factor))' | xxd -r -p |
        openssl dgst -sha256 -mac HMAC -macopt hexkey:$(printf \(secret) | base32 -d | xxd -p -c 99) | sed 's/.*= //'
        """
      let digest = try await run("sh", ["-c", script]).succeeded().output
      let hex = Array(digest)
      let offset = 2 * Int(String(hex[63]), radix: 16)!
      let number = Int(String(hex[offset..<offset + 8]), radix: 16)! & 0x7FFF_FFFF
      return String(format: "%08d", number % 100_000_000)
    }

    @Test("A PIN is typed on the token first") func aPINIsTypedOnTheTokenFirst() async throws {
      try await withToken { token, _ in
        #expect(try await token.command("enroll", hotp(), "--ask-pin").exit == .code(69))
        try await token.start()
        let enrollment = try token.begin("enroll", hotp(), "--ask-pin", "--json")
        try await token.choose("135792")
        try await enrollment.outcome().succeeded()

        let wrong = try token.begin("otp", "alice")
        try await token.type("246813")
        try await token.type("135792")
        #expect(try await wrong.outcome().succeeded().output == codes[0])
        let right = try token.begin("otp", "alice")
        try await token.type("135792")
        #expect(try await right.outcome().succeeded().output == codes[1])

        let change = try token.begin("pin", "change", "alice")
        try await token.type("135792")
        try await token.choose("975312")
        try await change.outcome().succeeded()
        try await token.stop()
        let alone = try await token.command("otp", "alice")
        #expect(alone.exit == .code(69) && alone.output.isEmpty && alone.errors.contains("PIN"))
        try await token.start()
        let changed = try token.begin("otp", "alice")
        try await token.type("975312")
        #expect(try await changed.outcome().succeeded().output == codes[2])
      }
    }

    @Test("No enrollment replaces a counter") func noEnrollmentReplacesACounter() async throws {
      try await withToken { token, _ in
        try await token.enroll(hotp()).succeeded()
        try await token.command("otp").succeeded()
        #expect(try await token.enroll(hotp()).exit == .code(64))
        let second = try await token.enroll(hotp(), name: "second")
        #expect(second.exit == .code(64) && second.errors.contains(#"already enrolled here, as account \"alice\""#))
        try await token.enroll(hotp("carol")).succeeded()
        let unnamed = try await token.command("otp")
        #expect(unnamed.exit == .code(64) && unnamed.errors.contains("name one of: alice, carol"))
        #expect(try await token.command("otp", "nobody").exit == .code(64))
        try await token.command("rename", "alice", "anna").succeeded()
        #expect(try await token.command("otp", "anna").succeeded().output == codes[1])
        try await token.command("remove", "anna").succeeded()
        #expect(try await token.accounts().map(\.account) == ["carol"])
        #expect(try await token.command("otp", "anna").exit == .code(64))
      }
    }

    @Test(
      "A malformed URI is bad data",
      arguments: [
        "otpauth://hotp/ACME:alice", "otpauth://hotp/ACME:alice?secret=", "otpauth://hotp/ACME:alice?secret=10",
        "otpauth://totp/ACME:alice?secret=IBAUEQ2E&period=0", "otpauth://totp/ACME:alice?secret=IBAUEQ2E&digits=7",
        "otpauth://totp/ACME:alice?secret=IBAUEQ2E&algorithm=rot13", "otpauth://motp/ACME:alice?secret=IBAUEQ2E",
      ])
    func aMalformedURIIsBadData(uri: String) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let token = TestToken(state: folder.file("token"), board: "simulated")
      let outcome = try await token.enroll(uri)
      #expect(outcome.exit == .code(65))
      #expect(!outcome.errors.contains("IBAU"), "no secret is repeated")
    }
  }
}
