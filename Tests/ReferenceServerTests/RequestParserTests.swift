// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP

/// Tests of the parsers of requests, which need no database.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RequestParserTests {
  @Test(
    "An Authorization header has a case-insensitive scheme and credentials without spaces",
    arguments: [
      ("Bearer abc", "abc"), ("bEARER   abc", "abc"), (" Bearer abc ", "abc"), ("Bearer", nil), ("Bearer a b", nil),
      ("Basic abc", nil), ("", nil), ("Bearer\u{A0}abc", nil), (nil, nil),
    ] as [(String?, String?)])
  func authorizationWord(header: String?, word: String?) {
    #expect(AuthorizationHeader.word(of: header, scheme: "bearer") == word)
  }

  @Test(
    "Basic credentials are split at the first colon and must be UTF-8 in Base64",
    arguments: [
      ("portal:secret", "portal", "secret"), ("portal:a:b", "portal", "a:b"), (":", "", ""), ("ü:ß", "ü", "ß"),
      // A combining mark after the colon.
      ("a:\u{301}b", "a", "\u{301}b"),
    ])
  func basicCredentials(text: String, id: String, secret: String) throws {
    let found = try #require(AuthorizationHeader.basic(of: "Basic \(Array(text.utf8).base64)"))
    #expect(found.id == id && found.secret == secret)
  }

  @Test(
    "Invalid Basic credentials are rejected", arguments: ["Basic cG9ydGFs", "Basic /zo6", "Basic !", "Bearer Og==", ""])
  func noBasicCredentials(header: String) { #expect(AuthorizationHeader.basic(of: header) == nil) }

  @Test(
    "A long poll waits for the preferred time, 0 to 55 seconds",
    arguments: [
      ("wait=5", 5), ("respond-async, wait=7", 7), ("wait=0", 0), ("wait=-1", 0), ("wait=9223372036854775807", 55),
      ("wait=-9223372036854775808", 0), ("wait=9223372036854775808", 55), ("wait=", 55), ("wait=1=2", 55),
      ("wait=x, wait=3", 3), ("", 55), (nil, 55),
    ] as [(String?, Int)])
  func longPollWait(header: String?, seconds: Int) { #expect(LongPollWait.seconds(preferredBy: header) == seconds) }

  @Test(
    "A cursor that was never issued causes a resync",
    arguments: ["e.18446744073709551615", "e.18446744073709551616", "e.-1", "f.0", "e", "", "e.0.0", "."])
  func strangeCursor(cursor: String) {
    var history = EventHistory()
    history.note(DeviceEvent(.request, transactionID: "1"))
    #expect(history.events(after: cursor, in: "e").events == [DeviceEvent(.resync)])
    #expect(history.events(after: "e.0", in: "e").events == [DeviceEvent(.request, transactionID: "1")])
  }

  @Test("An idempotency key is a UUID in upper or lower case")
  func idempotencyKey() {
    let key = "0a8f1c5e-0000-4000-8000-00000000000f"
    #expect(IdempotencyKey.parse(key.uppercased()) == key)
    for text in [nil, "", "x", key + "0", "{\(key)}"] { #expect(IdempotencyKey.parse(text) == nil) }
  }

  @Test("The media type of a form is case-insensitive and may have parameters")
  func mediaType() {
    for header in [
      Form.mediaType, " Application/X-www-form-urlencoded;charset=UTF-8", Form.mediaType + ";",
      "\t\(Form.mediaType)\t ; charset=UTF-8",
    ] {
      #expect(Form.isMediaType(header))
    }
    for header in [nil, "", ";", "application/json", "application/x-www-form-urlencodedx", Form.mediaType + " x"] {
      #expect(!Form.isMediaType(header))
    }
  }

  private func tokenRequest(_ form: String) throws -> TokenRequest { try TokenRequest(Form(parsing: Array(form.utf8))) }

  @Test("Each grant type requires its parameters")
  func grants() throws {
    #expect(try tokenRequest("grant_type=client_credentials") == .clientCredentials)
    let preAuthorized = "grant_type=\(Grant.preAuthorizedCode)"
    #expect(
      try tokenRequest("\(preAuthorized)&pre-authorized_code=1&profile_id=AB12CD")
        == .activation(code: "1", profileID: ProfileID("AB12CD"), ephemeralCertificate: nil))
    #expect(
      try tokenRequest("grant_type=\(Grant.jwtBearer)&assertion=a&profile_id=p")
        == .logIn(assertion: "a", profileID: ProfileID("p")))
    #expect(throws: TokenRequest.ParseError.unsupportedGrant) { try tokenRequest("grant_type=password") }
    for form in [
      "", "grant_type=", "\(preAuthorized)&profile_id=AB12CD", "grant_type=\(Grant.jwtBearer)&assertion=a",
    ]
      + ["ab12cd", "AB12C", "AB12CDE", "AB12C%C3%84", "%EF%BC%A1%EF%BC%A1"].map({
        "\(preAuthorized)&pre-authorized_code=1&profile_id=\($0)"
      })
    {
      #expect {
        try tokenRequest(form)
      } throws: {
        if case .invalid? = $0 as? TokenRequest.ParseError { true } else { false }
      }
    }
  }

  private func order(
    _ form: String, _ version: PortalVersion = .v4, allowList: Bool = false
  ) throws -> StartRequest {
    var configuration = ServerConfiguration()
    configuration.types = [.init(name: "login", messages: ["en": "Log in?", "de": "Anmelden?"])]
    configuration.mobileAuthentication.callbackAllowList = allowList
    configuration.callbacks = [.init(url: "https://portal.example/known")]
    return try StartRequest(Form(parsing: Array(form.utf8)), of: "portal", version, configuration)
  }

  private let needed = "type=login&user_id=ann&device_id=C1&callback_uri=https://portal.example/"

  @Test("A start request uses the message of the form, of its language, or in English")
  func messages() throws {
    #expect(try order(needed + "&message=Hi").message == "Hi")
    #expect(try order(needed + "&language_code=de").message == "Anmelden?")
    #expect(try order(needed + "&language_code=fr").message == "Log in?")
    #expect(try order(needed + "&message=" + String(repeating: "%C3%BC", count: 155)).message.count == 155)
    #expect(throws: StartRequest.ParseError.messageTooLong) {
      try order(needed + "&message=" + String(repeating: "%C3%BC", count: 156))
    }
    let longest = String(repeating: "%C3%BC", count: StartRequest.maxSecureMessageBytes / 2)
    #expect(try order(needed + "&secure_message=" + longest).secureMessage?.utf8.count == 65_536)
    #expect(throws: StartRequest.ParseError.messageTooLong) {
      try order(needed + "&secure_message=" + longest + "x")
    }
  }

  private func readBack(_ digits: String?, message: String) throws -> String? {
    var configuration = ServerConfiguration()
    configuration.types = [.init(name: "login")]
    configuration.types[0].readsBack = true
    let form = [(name: "message", value: message)] + (digits.map { [(name: "read_back", value: $0)] } ?? [])
    let encoded = form.map {
      "&\($0.name)=" + $0.value.utf8.map { "%" + String(Int($0) + 256, radix: 16).suffix(2) }.joined()
    }
    return try StartRequest(Form(parsing: Array((needed + encoded.joined()).utf8)), of: "portal", .v4, configuration)
      .readBack
  }

  @Test(
    "The digits to type are a number of the message",
    arguments: [
      ("1250", "Pay 1250 EUR?"), ("1250", "1250"), ("125000", "Pay 1,250.00 EUR to ACME, 7 items?"),
      ("1250", "Pay 1'250 to 99"), ("125000", "1\u{A0}250,00 EUR"), ("7", "Order 7."), ("12", "12. Then 13"),
      (String(repeating: "9", count: 32), String(repeating: "9", count: 32)),
    ])
  func digitsToType(digits: String, message: String) throws {
    #expect(try readBack(digits, message: message) == digits)
  }

  @Test(
    "Other digits to type are refused",
    arguments: [
      (nil, "Pay 1250 EUR?"), ("", "Pay 1250 EUR?"), ("250", "Pay 1250 EUR?"), ("1250", "Pay 12500 EUR?"),
      ("1250", "Pay 12-50 EUR?"), ("1250", "Pay 12 .50 EUR?"), ("12a", "Pay 12a?"), ("\u{661}", "\u{661}"),
      ("1250", "Pay up"), (String(repeating: "9", count: 33), String(repeating: "9", count: 33)),
    ] as [(String?, String)])
  func otherDigitsToType(digits: String?, message: String) {
    #expect {
      try readBack(digits, message: message)
    } throws: {
      if case .badParameter? = $0 as? StartRequest.ParseError { true } else { false }
    }
  }

  /// Fails if a portal could believe that the user types digits that are not asked for.
  @Test("Digits to type are refused for another type") func digitsOfAnotherType() {
    #expect(throws: StartRequest.ParseError.badParameter("\"read_back\" is not for this type.")) {
      try order(needed + "&message=Pay%2012&read_back=12")
    }
  }

  @Test("A start request requires a known type, a user and a permitted callback")
  func orders() throws {
    #expect(throws: StartRequest.ParseError.unknownType) { try order("type=x") }
    for form in [
      "", "type=login", "type=login&user_id=ann", "type=login&user_id=ann&device_id=C1",
      needed.replacing("example/", with: "example:65536/"),
      needed.replacing("ann", with: ""),
    ] {
      #expect {
        try order(form)
      } throws: {
        if case .badParameter? = $0 as? StartRequest.ParseError { true } else { false }
      }
    }
    #expect(throws: StartRequest.ParseError.badParameter(#""callback_uri" is not one of the configured callbacks."#)) {
      try order(needed, allowList: true)
    }
    #expect(try order(needed + "known", allowList: true).callbackURI == "https://portal.example/known")
  }

  @Test("A start request of version 4 names a device, one of version 3 the application")
  func targets() throws {
    #expect(try order(needed).target == .device(ClientID("C1")))
    let named = needed.replacing("device_id=C1", with: "app_id=approval-token")
    #expect(try order(named, .v3).target == .anyDevice)
    #expect(throws: StartRequest.ParseError.badParameter(#""device_id" is missing."#)) { try order(named) }
    #expect(throws: StartRequest.ParseError.badParameter(#""app_id" is missing."#)) { try order(needed, .v3) }
    #expect(throws: StartRequest.ParseError.unknownApplication) {
      try order(named.replacing("approval-token", with: "other"), .v3)
    }
  }

  private func registration(_ change: (inout RegistrationRequest) -> Void = { _ in }) throws -> RegistrationRequest {
    let capabilities = ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb)
    var request = RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(try P256PrivateKey().publicKey),
      capabilities: capabilities)
    change(&request)
    return request
  }

  @Test("The metadata of a registration must be bounded and printable")
  func registrations() throws {
    _ = try registration().checked()
    _ = try registration { $0.boardSerial = "10000000abcdef01" }.checked()
    let flawed: [(inout RegistrationRequest) -> Void] = [
      { $0.tokenEndpointAuthMethod = "none" }, { $0.jwks.keys += $0.jwks.keys }, { $0.jwks.keys = [] },
      { $0.clientName = "" }, { $0.clientName = String(repeating: "n", count: 129) },
      { $0.softwareVersion = String(repeating: "1", count: 65) }, { $0.softwareID = "a\nb" },
      { $0.approvalCapabilities.custom = Array(repeating: "c", count: 33) },
      { $0.approvalCapabilities.biometric = ["\u{202E}"] }, { $0.boardSerial = "" },
      { $0.boardSerial = String(repeating: "1", count: 65) }, { $0.boardSerial = "1\u{1B}[m" },
    ]
    for (index, change) in flawed.enumerated() {
      #expect(throws: DeviceMetadataError.self, "change \(index)") { try registration(change).checked() }
    }
  }
}
