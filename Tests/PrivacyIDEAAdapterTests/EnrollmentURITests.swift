// SPDX-License-Identifier: Apache-2.0
import ServerBackends
import Testing

@testable import PrivacyIDEAAdapter

@Suite("An enrollment URL", .timeLimit(.minutes(5))) struct EnrollmentURITests {
  private static let query =
    "url=https%3A//pi.example%3A5001/ttype/push&ttl=10&issuer=privacyIDEA&enrollment_credential=ee5f&v=1"
    + "&serial=PIPU00006D26&sslverify=1&poll_only=True"

  private static func uri(_ query: String, scheme: String = "otpauth://pipush/", label: String = "PIPU00006D26")
    -> String
  {
    "\(scheme)\(label)?\(query)"
  }

  /// `query` with a parameter replaced or removed.
  private static func with(_ name: String, _ value: String?) -> String {
    let others = query.split(separator: "&").filter { !$0.hasPrefix("\(name)=") }
    return (others.map(String.init) + (value.map { ["\(name)=\($0)"] } ?? [])).joined(separator: "&")
  }

  @Test("Is read from the worked examples but for their plain http")
  func isReadFromTheWorkedExamplesButForTheirPlainHttp() throws {
    #expect(throws: EnrollmentURI.ParseError.notHTTPS) { try EnrollmentURI(WorkedExamples["enrolmentURI"]) }
    let secure = WorkedExamples["enrolmentURI"].replacing("http%3A", with: "https%3A")
    let uri = try EnrollmentURI(secure)
    #expect(uri.endpoint == "https://127.0.0.1:5001/ttype/push")
    #expect(uri.serial == "PIPU00006D26" && uri.label == "PIPU00006D26" && uri.issuer == "privacyIDEA")
    #expect(uri.credential == "ee5f8ef2a949e32b8cd3960808d44f6aa28e9db7")
    #expect(uri.timeToLive == .seconds(600) && uri.verifiesServer && uri.unlock == nil && uri.flavor == .push)
    let elliptic = try EnrollmentURI(WorkedExamples["ecURI"].replacing("http%3A", with: "https%3A"))
    #expect(elliptic.flavor == .edupush && elliptic.endpoint == "https://127.0.0.1:5002/ttype/edupush")
  }

  @Test(
    "Has one of three schemes",
    arguments: [
      ("otpauth://pipush/", EnrollmentURI.Flavor.push), ("pia://pipush/", .push), ("PIA://PiPush/", .push),
      ("edumfa-push://edumfa/", .edupush),
    ])
  func hasOneOfThreeSchemes(scheme: String, flavor: EnrollmentURI.Flavor) throws {
    #expect(try EnrollmentURI(Self.uri(Self.query, scheme: scheme)).flavor == flavor)
  }

  @Test("May have white space around it, parameters in any order and unknown ones")
  func mayHaveWhiteSpaceAroundItParametersInAnyOrderAndUnknownOnes() throws {
    let reversed = Self.query.split(separator: "&").reversed().joined(separator: "&")
    let uri = try EnrollmentURI("\n  \(Self.uri(reversed + "&image=https%3A//x/y.png&new=1&&"))\r\n")
    #expect(uri == (try EnrollmentURI(Self.uri(Self.query))))
  }

  @Test("Has texts in any alphabet, and shows none that moves a cursor")
  func hasTextsInAnyAlphabetAndShowsNoneThatMovesACursor() throws {
    let uri = try EnrollmentURI(
      Self.uri(Self.with("issuer", "Gr%C3%B6%C3%9Fe+%1B%5B2J%E2%80%AE%0A1"), label: "alice%40lab%20%E6%97%A5"))
    #expect(uri.issuer == "Größe+[2J1")
    #expect(uri.label == "alice@lab 日")
  }

  @Test(
    "Says how to verify the user",
    arguments: [
      ("pin", "True", RequiredUnlock.pin), ("pin", "False", nil), ("app_force_unlock", "any", .any),
      ("app_force_unlock", "biometric", .biometric), ("app_force_unlock", "pin", .pin), ("pin", nil, nil),
    ])
  func saysHowToVerifyTheUser(name: String, value: String?, unlock: RequiredUnlock?) throws {
    #expect(try EnrollmentURI(Self.uri(Self.with(name, value))).unlock == unlock)
  }

  @Test("Only 0 turns the certificate check off", arguments: [("0", false), ("1", true), ("no", true), ("", true)])
  func only0TurnsTheCertificateCheckOff(value: String, verifies: Bool) throws {
    #expect(try EnrollmentURI(Self.uri(Self.with("sslverify", value))).verifiesServer == verifies)
  }

  @Test(
    "That is not exactly one is refused",
    arguments: [
      (Self.uri(Self.with("url", nil)), EnrollmentURI.ParseError.missing("url")),
      (Self.uri(Self.with("serial", nil)), .missing("serial")), (Self.uri(Self.with("v", nil)), .missing("v")),
      (Self.uri(Self.with("serial", "")), .missing("serial")),
      (Self.uri(Self.with("enrollment_credential", nil)), .missing("enrollment_credential")),
      (Self.uri(Self.with("v", "2")), .version("2")), (Self.uri(Self.query + "&serial=PIPU2"), .repeated("serial")),
      (Self.uri(Self.query + "&v=1"), .repeated("v")), (Self.uri(Self.query + "&%76=1"), .repeated("v")),
      (Self.uri(Self.with("url", "http%3A//pi.example/ttype/push")), .notHTTPS),
      (Self.uri(Self.with("url", "ftp%3A//pi.example/")), .notHTTPS),
      (Self.uri(Self.with("url", "https%3A//")), .malformed("url")),
      (Self.uri(Self.with("url", "https%3A///ttype")), .malformed("url")),
      (Self.uri(Self.with("url", "https%3A//good%40evil.example/")), .malformed("url")),
      (Self.uri(Self.with("url", "https%3A//pi.example/%3Fa=b")), .malformed("url")),
      (Self.uri(Self.with("url", "https%3A//pi.example/%23")), .malformed("url")),
      (Self.uri(Self.with("url", "https%3A//pi.example/%0D%0AX")), .malformed("url")),
      (Self.uri(Self.with("url", "https%3A//pi.example/a%20b")), .malformed("url")),
      (Self.uri(Self.with("serial", "A%7CB")), .malformed("serial")),
      (Self.uri(Self.with("serial", String(repeating: "A", count: 65))), .malformed("serial")),
      (Self.uri(Self.with("serial", "PIPU%0")), .malformed("serial")),
      (Self.uri(Self.with("issuer", "%FF")), .malformed("issuer")),
      (Self.uri(Self.with("issuer", "%4")), .malformed("issuer")),
      (Self.uri(Self.with("enrollment_credential", "a%00")), .malformed("enrollment_credential")),
      (Self.uri(Self.with("ttl", "0")), .malformed("ttl")), (Self.uri(Self.with("ttl", "x")), .malformed("ttl")),
      (Self.uri(Self.with("app_force_unlock", "face")), .unknownUnlock("face")),
      (Self.uri(Self.query + "#x"), .malformed("white space, a control character or a fragment")),
      (Self.uri(Self.query, label: "a b"), .malformed("white space, a control character or a fragment")),
      (Self.uri(Self.query + "&x=" + String(repeating: "y", count: 4096)), .tooLong),
      ("otpauth://pipush/PIPU1", .missing("url")), ("otpauth://totp/x?secret=A", .notAnEnrollment),
      ("", .notAnEnrollment),
      ("pia://container/SMPH1?v=1", .container), ("https://pi.example/ttype/push", .notAnEnrollment),
    ])
  func thatIsNotExactlyOneIsRefused(text: String, parseError: EnrollmentURI.ParseError) {
    #expect(throws: parseError) { try EnrollmentURI(text) }
  }
}
