// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import PrivacyIDEAAdapter

@Suite(.timeLimit(.minutes(5))) struct `An enrolment URL` {
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

  @Test func `Is read from the worked examples but for their plain http`() throws {
    #expect(throws: EnrolmentURI.Flaw.notHTTPS) { try EnrolmentURI(WorkedExamples["enrolmentURI"]) }
    let secure = WorkedExamples["enrolmentURI"].replacing("http%3A", with: "https%3A")
    let uri = try EnrolmentURI(secure)
    #expect(uri.endpoint == "https://127.0.0.1:5001/ttype/push")
    #expect(uri.serial == "PIPU00006D26" && uri.label == "PIPU00006D26" && uri.issuer == "privacyIDEA")
    #expect(uri.credential == "ee5f8ef2a949e32b8cd3960808d44f6aa28e9db7")
    #expect(uri.timeToLive == .seconds(600) && uri.verifiesServer && uri.unlock == nil && uri.flavour == .push)
    let elliptic = try EnrolmentURI(WorkedExamples["ecURI"].replacing("http%3A", with: "https%3A"))
    #expect(elliptic.flavour == .edupush && elliptic.endpoint == "https://127.0.0.1:5002/ttype/edupush")
  }

  @Test(arguments: [
    ("otpauth://pipush/", EnrolmentURI.Flavour.push), ("pia://pipush/", .push), ("PIA://PiPush/", .push),
    ("edumfa-push://edumfa/", .edupush),
  ])
  func `Has one of three schemes`(scheme: String, flavour: EnrolmentURI.Flavour) throws {
    #expect(try EnrolmentURI(Self.uri(Self.query, scheme: scheme)).flavour == flavour)
  }

  @Test func `May have white space around it, parameters in any order and unknown ones`() throws {
    let reversed = Self.query.split(separator: "&").reversed().joined(separator: "&")
    let uri = try EnrolmentURI("\n  \(Self.uri(reversed + "&image=https%3A//x/y.png&new=1&&"))\r\n")
    #expect(uri == (try EnrolmentURI(Self.uri(Self.query))))
  }

  @Test func `Has texts in any alphabet, and shows none that moves a cursor`() throws {
    let uri = try EnrolmentURI(
      Self.uri(Self.with("issuer", "Gr%C3%B6%C3%9Fe+%1B%5B2J%E2%80%AE%0A1"), label: "alice%40lab%20%E6%97%A5"))
    #expect(uri.issuer == "Größe+[2J1")
    #expect(uri.label == "alice@lab 日")
  }

  @Test(arguments: [
    ("pin", "True", EnrolmentURI.Unlock.pin), ("pin", "False", nil), ("app_force_unlock", "any", .any),
    ("app_force_unlock", "biometric", .biometric), ("app_force_unlock", "pin", .pin), ("pin", nil, nil),
  ])
  func `Says how to verify the user`(name: String, value: String?, unlock: EnrolmentURI.Unlock?) throws {
    #expect(try EnrolmentURI(Self.uri(Self.with(name, value))).unlock == unlock)
  }

  @Test(arguments: [("0", false), ("1", true), ("no", true), ("", true)])
  func `Only 0 asks us to trust anybody`(value: String, verifies: Bool) throws {
    #expect(try EnrolmentURI(Self.uri(Self.with("sslverify", value))).verifiesServer == verifies)
  }

  @Test(arguments: [
    (Self.uri(Self.with("url", nil)), EnrolmentURI.Flaw.missing("url")),
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
    ("otpauth://pipush/PIPU1", .missing("url")), ("otpauth://totp/x?secret=A", .notAnEnrolment), ("", .notAnEnrolment),
    ("pia://container/SMPH1?v=1", .container), ("https://pi.example/ttype/push", .notAnEnrolment),
  ])
  func `That is not exactly one is refused`(text: String, flaw: EnrolmentURI.Flaw) {
    #expect(throws: flaw) { try EnrolmentURI(text) }
  }
}
