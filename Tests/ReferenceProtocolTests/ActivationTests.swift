// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import Testing

@Suite(.timeLimit(.minutes(5))) struct ActivationTests {
  private static let pin = SHA256.hash([1]).base64
  private static let code = "1234567890128"

  @Test(
    "Something else is not an activation URI",
    arguments: [
      "", "http://example.org", "approvaltoken://", "approvaltoken://activate", "approvaltoken://other?server=x",
      "APPROVALTOKEN://activate?server=https%3A%2F%2Fh&code=1234567890128",
    ])
  func somethingElseIsNotAnActivationURI(text: String) {
    #expect(throws: ActivationURI.ParseError.notAnActivationURI) { try ActivationURI(parsing: text) }
  }

  @Test(
    "A damaged URI is refused and the reason named",
    arguments: [
      ("code=\(code)", ActivationURI.ParseError.missing("server")),
      ("server=https%3A%2F%2Fh", .missing("code")),
      ("", .unknown("")),
      ("server=https%3A%2F%2Fh&code=\(code)&colour=red", .unknown("colour")),
      ("server=https%3A%2F%2Fh&server=https%3A%2F%2Fi&code=\(code)", .repeated("server")),
      ("server=https%3A%2F%2Fh&code=\(code)&code=\(code)", .repeated("code")),
      ("server=https%3A%2F%2Fh&code=1234567890123", .badCode),
      ("server=https%3A%2F%2Fh&code=12345", .badCode),
      ("server=https%3A%2F%2Fh&code=123456789012x", .badCode),
      ("server=http%3A%2F%2Fh&code=\(code)", .badServer("http://h")),
      ("server=h&code=\(code)", .badServer("h")),
      ("server=https%3A%2F%2F&code=\(code)", .badServer("https://")),
      ("server=https%3A%2F%2Fh%2Fpath&code=\(code)", .badServer("https://h/path")),
      ("server=https%3A%2F%2Fu%3Ap%40h&code=\(code)", .badServer("https://u:p@h")),
      ("server=https%3A%2F%2Fh%3A0&code=\(code)", .badServer("https://h:0")),
      ("server=https%3A%2F%2Fh%3A65536&code=\(code)", .badServer("https://h:65536")),
      ("server=https%3A%2F%2Fh%3A%2B443&code=\(code)", .badServer("https://h:+443")),
      // After the NUL, the rest of the address is not read by the C library.
      ("server=https%3A%2F%2F[::1%00x]&code=\(code)", .badServer("https://[::1\0x]")),
      ("server=https%3A%2F%2F[1:2:]&code=\(code)", .badServer("https://[1:2:]")),
      ("server=https%3A%2F%2Fh%0D%0AX&code=\(code)", .badServer("https://h\r\nX")),
      ("server=https%3A%2F%2Fh&code=\(code)&pin_sha256=abc", .badPin("abc")),
      ("server=https%3A%2F%2Fh&code=\(code)&pin_sha256=", .badPin("")),
      ("server=https%3A%2F%2Fh%&code=\(code)", .badPercentEncoding),
      ("server=https%3A%2F%2Fh%G0&code=\(code)", .badPercentEncoding),
      ("server=https%3A%2F%2Fh%FF&code=\(code)", .badPercentEncoding),
    ])
  func aDamagedURIIsRefusedAndTheReasonNamed(query: String, refusal: ActivationURI.ParseError) {
    #expect(throws: refusal) { try ActivationURI(parsing: "approvaltoken://activate?" + query) }
  }

  @Test("An endless URI is refused unread") func anEndlessURIIsRefusedUnread() {
    #expect(throws: ActivationURI.ParseError.tooLong) {
      try ActivationURI(parsing: "approvaltoken://activate?server=" + String(repeating: "a", count: 8192))
    }
  }

  @Test(
    "A URI survives the round trip",
    arguments: ["https://h", "https://example.org:8443", "https://127.0.0.1:1", "https://[::1]:65535"])
  func aURISurvivesTheRoundTrip(server: String) throws {
    let uri = ActivationURI(server: server, code: ActivationCode.random(), pins: [Self.pin])
    #expect(try ActivationURI(parsing: uri.text) == uri)
  }

  @Test("The URI of a fleet token survives the round trip, and is no activation URI") func fleetURI() throws {
    let uri = FleetURI(server: "https://[::1]:8443", token: String(repeating: "0f", count: 32), pins: [Self.pin])
    #expect(try FleetURI(parsing: uri.text) == uri)
    #expect(throws: ActivationURI.ParseError.notAnActivationURI) { try ActivationURI(parsing: uri.text) }
  }

  @Test(
    "A damaged URI of a fleet token is refused and the reason named",
    arguments: [
      ("approvaltoken-fleet://register?server=https%3A%2F%2Fh&token=00", ActivationURI.ParseError.badFleetToken),
      ("approvaltoken-fleet://register?server=https%3A%2F%2Fh&code=\(code)", .unknown("code")),
      ("approvaltoken-fleet://register?server=https%3A%2F%2Fh", .missing("token")),
      ("approvaltoken-fleet://activate?server=https%3A%2F%2Fh", .notAFleetURI),
      ("approvaltoken://activate?server=https%3A%2F%2Fh&code=\(code)", .notAFleetURI),
    ])
  func damagedFleetURI(text: String, refusal: ActivationURI.ParseError) {
    #expect(throws: refusal) { try FleetURI(parsing: text) }
  }

  @Test(
    "The check digit catches every single wrong digit", arguments: [ActivationCode.Form.short, .long])
  func theCheckDigitCatchesEverySingleWrongDigit(form: ActivationCode.Form) throws {
    let code = ActivationCode.random(form).digits
    #expect(ActivationCode(code) != nil && code.count == form.rawValue)
    for (index, digit) in code.enumerated() {
      for other in "0123456789" where other != digit {
        var wrong = Array(code)
        wrong[index] = other
        #expect(ActivationCode(String(wrong)) == nil)
      }
    }
  }

  @Test("A code has 13 or 25 digits") func lengths() {
    let lengths = (0...40).filter { ActivationCode(String(repeating: "0", count: $0)) != nil }
    #expect(lengths == [13, 25])
  }

  /// The example number of ISO/IEC 7812-1: 7992739871 has the check digit 3.
  @Test("The check digit is luhns") func theCheckDigitIsLuhns() {
    #expect(ActivationCode("0079927398713") != nil)
    #expect(ActivationCode("0079 9273 9871-3")?.digits == "0079927398713")
  }
}
