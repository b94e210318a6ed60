// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import JSONValues
import RegistrationURIs
import Secrets
import ServerBackends
import Testing

@testable import PingAMAdapter

@Suite("A registration URI", .timeLimit(.minutes(5))) struct RegistrationURITests {
  @Test("Is read as the vectors have it", arguments: Vectors.all("registration-uris")) func isReadAsTheVectorsHaveIt(
    vector: JSONValue
  ) throws {
    let uri = try RegistrationURI(try #require(vector["uri"]?.text))
    let expected = try #require(vector["expect"])
    let push = try #require(uri.push)
    #expect(uri.issuer == expected["issuer"]?.text)
    #expect(uri.accountName == expected["accountName"]?.text)
    #expect(push.messageID == expected["messageId"]?.text)
    if let secret = expected["secret_hex"]?.text {
      #expect(push.secret.withExposedSecret { Array($0).lowercaseHex } == secret)
      #expect(push.challenge.lowercaseHex == expected["challenge_hex"]?.text)
      #expect(push.registrationURL == expected["registrationEndpoint"]?.text)
      #expect(push.cookie == expected["amlbCookie"]?.text)
      #expect(push.userID == expected["uid"]?.text)
      #expect(uri.backgroundColor == expected["backgroundColor"]?.text)
    }
    if let url = expected["authenticationEndpoint"]?.text { #expect(push.authenticationURL == url) }
    if let id = expected["resourceId"]?.text { #expect(push.resourceID == id) }
    #expect(uri.image == expected["imageURL"]?.text)
    #expect(uri.policies == expected["policies"]?.text)
    guard let oath = expected["oath"] else { return #expect(uri.oath == nil) }
    let credential = try #require(uri.oath)
    #expect(credential.secret.withExposedSecret { Array($0).lowercaseHex } == oath["secret_hex"]?.text)
    #expect(credential.algorithm.rawValue == oath["algorithm"]?.text)
    #expect(credential.digits == 6 && credential.factor == .period(30))
    #expect(credential.resourceID == oath["resourceId"]?.text)
    #expect(credential.issuer == uri.issuer && credential.accountName == uri.accountName)
  }

  /// The required parameters of a push URI, with some replaced or removed.
  private static func uri(
    _ path: String = "Example:ann", scheme: String = "pushauth://push/", changing changes: [(String, String?)] = []
  ) -> String {
    var parameters = [
      ("m", "REGISTER:1"), ("s", [UInt8](repeating: 7, count: 32).base64URL), ("c", [UInt8](0..<32).base64URL),
      ("r", Array("https://am.example/r?_action=register".utf8).base64URL),
      ("a", Array("https://am.example/a?_action=authenticate".utf8).base64URL),
    ]
    for (name, value) in changes {
      parameters.removeAll { $0.0 == name }
      if let value { parameters.append((name, value)) }
    }
    return "\(scheme)\(path)?" + parameters.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }

  private static func encoded(_ text: String) -> String { Array(text.utf8).base64URL }

  @Test(
    "Names issuer and account",
    arguments: [
      ("Example:ann", nil, "Example", "ann"), ("forgerock:ann", "Example", "Example", "ann"),
      ("A%3AB:ann", nil, "A:B", "ann"), ("A:B:ann", "A:B", "A:B", "ann"), ("A:B:ann", nil, "A", "B:ann"),
      ("ann", nil, "ann", "ann"), ("ann", "Example", "Example", "ann"), ("Example:", nil, "Example", "Untitled"),
      (":ann", nil, "", "ann"), ("a+b:ann+test@x.org", nil, "a+b", "ann+test@x.org"),
      ("Ex:a,b;c=d&e", nil, "Ex", "a,b;c=d&e"),
      ("Ex:%20ann%20", nil, "Ex", "ann"), ("/Ex:ann", nil, "/Ex", "ann"), ("%C3%9C:%E6%97%A5", nil, "Ü", "日"),
    ])
  func namesIssuerAndAccount(path: String, namedIssuer: String?, issuer: String, account: String) throws {
    let uri = try RegistrationURI(Self.uri(path, changing: [("issuer", namedIssuer.map(Self.encoded))]))
    #expect(uri.issuer == issuer && uri.accountName == account)
  }

  @Test("Loses what follows a question mark in a name, and the first parameter, but nothing else")
  func losesWhatFollowsAQuestionMarkInANameAndTheFirstParameterButNothingElse() throws {
    let text = Self.uri("Example:who", changing: [("uid", Self.encoded("u"))]).replacing("?m=", with: "?me?l=YT1i&m=")
    let uri = try RegistrationURI(text)
    #expect(uri.accountName == "who" && uri.push?.userID == "u" && uri.push?.cookie == nil)
  }

  @Test("May have white space around it, unknown parameters and any case before the path")
  func mayHaveWhiteSpaceAroundItUnknownParametersAndAnyCaseBeforeThePath() throws {
    let uri = try RegistrationURI(
      "\n \(Self.uri(scheme: "PushAuth://PUSH/", changing: [("new", "1"), ("x", "")]))&&\r\n")
    #expect(uri.push?.registrationURL == "https://am.example/r?_action=register")
  }

  /// Fails if a URL is accepted to which no request can be sent.
  @Test("Has URLs with the scheme in any case, which is lower case afterwards") func schemesOfURLs() throws {
    let uri = try RegistrationURI(
      Self.uri(changing: [
        ("r", Self.encoded("HTTPS://AM.example/R?_action=register")), ("a", Self.encoded("Https://am.example/a")),
      ]))
    let push = try #require(uri.push)
    #expect(push.registrationURL == "https://AM.example/R?_action=register")
    #expect(push.authenticationURL == "https://am.example/a")
    let trust = ServerTrust().limited(to: [push.registrationURL])
    for url in [push.registrationURL, push.authenticationURL] { try trust.check(HTTPRequest(.post, url)) }
  }

  @Test("Has Base64 in either alphabet, padded or not") func hasBase64InEitherAlphabetPaddedOrNot() throws {
    let secret = [UInt8](repeating: 0xFB, count: 32)
    for text in [secret.base64, secret.base64URL, secret.base64.replacing("+", with: "%2B")] {
      let push = try #require(try RegistrationURI(Self.uri(changing: [("s", text), ("c", secret.base64)])).push)
      #expect(push.secret.withExposedSecret { Array($0) } == secret && push.challenge == secret)
    }
  }

  @Test("Reads the user ID from either parameter") func readsTheUserIDFromEitherParameter() throws {
    #expect(try RegistrationURI(Self.uri(changing: [("d", Self.encoded("d"))])).push?.userID == "d")
    let both = [("d", Self.encoded("d")), ("uid", Self.encoded("uid"))] as [(String, String?)]
    #expect(try RegistrationURI(Self.uri(changing: both)).push?.userID == "uid")
  }

  @Test("Has the logo encoded for push alone, plain with one-time passwords")
  func hasTheLogoEncodedForPushAlonePlainWithOneTimePasswords() throws {
    let logo = "https://x/y.png?a=b"
    #expect(try RegistrationURI(Self.uri(changing: [("image", Self.encoded(logo))])).image == logo)
    #expect(try RegistrationURI(Self.uri(changing: [("image", "")])).image == nil)
    let combined = Self.uri(scheme: "mfauth://hotp/", changing: [("image", logo), ("secret", "MFRGG===")])
    #expect(try RegistrationURI(combined).image == logo)
  }

  @Test(
    "That is damaged is refused",
    arguments: [
      ([("m", nil)], RegistrationURI.ParseError.missing("m")), ([("m", "")], .missing("m")),
      ([("s", nil)], .missing("s")),
      ([("c", nil)], .missing("c")), ([("c", "")], .missing("c")), ([("r", nil)], .missing("r")),
      ([("a", "")], .missing("a")), ([("s", "c2hvcnQ")], .weakSecret(bytes: 5)), ([("s", "!")], .malformed("s")),
      ([("s", "A")], .malformed("s")), ([("c", "A-_ä")], .malformed("a character")), ([("c", "AB=C")], .malformed("c")),
      ([("c", [UInt8](repeating: 1, count: 1025).base64)], .malformed("c")),
      ([("r", Self.encoded("ftp://am.example/"))], .malformed("r")), ([("r", Self.encoded("/json"))], .malformed("r")),
      ([("a", Self.encoded("https://"))], .malformed("a")), ([("a", Self.encoded("https:///x"))], .malformed("a")),
      ([("a", Self.encoded("https://good@evil.example/"))], .malformed("a")),
      ([("a", Self.encoded("https://am.example/#x"))], .malformed("a")),
      ([("a", Self.encoded("https://am.example/a b"))], .malformed("a")),
      ([("a", Self.encoded("https://am.example/\r\nX: y"))], .malformed("a")),
      ([("l", Self.encoded("a=b\r\nX: y"))], .malformed("l")), ([("l", Self.encoded("a=é"))], .malformed("l")),
      ([("issuer", Self.encoded("a\u{1B}b"))], .malformed("issuer")), ([("issuer", "_w")], .malformed("issuer")),
      ([("uid", "%")], .malformed("uid")), ([("b", "red")], .malformed("b")), ([("version", "2")], .version("2")),
      ([("version", "one")], .version("one")), ([("x", "%FF")], .malformed("x")),
    ])
  func thatIsDamagedIsRefused(changes: [(String, String?)], parseError: RegistrationURI.ParseError) {
    let parseError =
      parseError == .malformed("a character") ? .malformed("white space or a character that is not ASCII") : parseError
    #expect(throws: parseError) { try RegistrationURI(Self.uri(changing: changes)) }
  }

  @Test(
    "That is none is refused",
    arguments: [
      (Self.uri() + "&s=AAAA", RegistrationURI.ParseError.repeated("s")), (Self.uri() + "&%73=AAAA", .repeated("s")),
      (Self.uri() + "&m=", .repeated("m")), (Self.uri("a%00b:ann"), .malformed("a control character in the name")),
      (Self.uri("Ex:a%0Ab"), .malformed("a control character in the name")),
      (Self.uri("Ex:%4"), .malformed("the name")),
      (Self.uri("Ex:%FF"), .malformed("the name")), (Self.uri(""), .nameless), (Self.uri("%20"), .nameless),
      (Self.uri("a b"), .malformed("white space or a character that is not ASCII")),
      (Self.uri() + "&x=" + String(repeating: "y", count: 8192), .tooLong), ("", .notARegistration),
      (Self.uri(scheme: "pushauth://pull/"), .notARegistration),
      (Self.uri(scheme: "mfauth://push/"), .notARegistration),
      (Self.uri(scheme: "pushauth:/push/"), .notARegistration), ("otpauth://pipush/PIPU1?v=1", .notARegistration),
      ("https://am.example/", .notARegistration), ("pushauth://push/Example:ann", .missing("m")),
      ("mfauth://totp/Ex:ann?secret=MFRGG", .missing("m")),
      (Self.uri(scheme: "mfauth://totp/"), .missing("secret")),
    ])
  func thatIsNoneIsRefused(text: String, parseError: RegistrationURI.ParseError) {
    #expect(throws: parseError) { try RegistrationURI(text) }
  }

  @Test("Of just 8 KiB is read") func ofJust8KiBIsRead() throws {
    let short = Self.uri() + "&x="
    let uri = short + String(repeating: "y", count: 8192 - short.utf8.count)
    #expect(try RegistrationURI(uri).push != nil)
  }

  @Test(
    "Is recognized by its start",
    arguments: [
      (Self.uri(), true), ("mfauth://totp/", true), (" OTPAUTH://hotp/x", true), ("otpauth://pipush/PIPU1", false),
      ("approvaltoken://activate?server=x", false), ("pushauth", false), ("", false),
    ])
  func isRecognizedByItsStart(text: String, isOne: Bool) {
    #expect(RegistrationURI.recognizes(text) == isOne)
  }
}
