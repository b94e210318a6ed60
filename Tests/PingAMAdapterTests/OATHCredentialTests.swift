// SPDX-License-Identifier: Apache-2.0
import RegistrationURIs
import Secrets
import ServerBackends
import Testing

@testable import PingAMAdapter

@Suite("A credential for one-time passwords", .timeLimit(.minutes(5))) struct OATHCredentialTests {
  private static func read(_ query: String, host: String = "totp") throws -> OATHCredential {
    let uri = try RegistrationURI("otpauth://\(host)/Example:ann?\(query)")
    #expect(uri.push == nil)
    return try #require(uri.oath)
  }

  @Test(
    "Has what it says and defaults for the rest",
    arguments: [
      ("secret=MFRGG", "totp", OATHCredential.Algorithm.sha1, 6, OATHCredential.Factor.period(30)),
      ("secret=MFRGG", "HOTP", .sha1, 6, .counter(0)),
      ("secret=MFRGG&period=60&digits=8&algorithm=sha512", "totp", .sha512, 8, .period(60)),
      ("secret=MFRGG&counter=7&algorithm=SHA224&digits=6", "hotp", .sha224, 6, .counter(7)),
      ("secret=MFRGG&algorithm=Md5&period=&digits=", "totp", .md5, 6, .period(30)),
      ("secret=MFRGG&counter=9223372036854775807", "hotp", .sha1, 6, .counter(9_223_372_036_854_775_807)),
      ("secret=MFRGG&counter=x", "totp", .sha1, 6, .period(30)),
    ])
  func hasWhatItSaysAndDefaultsForTheRest(
    query: String, host: String, algorithm: OATHCredential.Algorithm, digits: Int, factor: OATHCredential.Factor
  ) throws {
    let credential = try Self.read(query, host: host)
    #expect(credential.algorithm == algorithm && credential.digits == digits && credential.factor == factor)
    #expect(credential.issuer == "Example" && credential.accountName == "ann")
  }

  @Test(
    "Has its secret in Base32 with spaces, dashes and either case",
    arguments: [
      "MFRGGZDF", "mfrggzdf", "MFRG-GZDF", "mfrg%20gzdf", "MFRGGZDF========", "MFRGGZDF%3D",
    ])
  func hasItsSecretInBase32WithSpacesDashesAndEitherCase(secret: String) throws {
    #expect(try Self.read("secret=\(secret)").secret.withExposedSecret { Array($0) } == Array("abcde".utf8))
  }

  /// The last of 26 letters has two bits too many.
  @Test("Has a secret of random letters, whose last bits are dropped") func randomLetters() throws {
    let octets: [UInt8] = [
      0x00, 0x44, 0x32, 0x14, 0xC7, 0x42, 0x54, 0xB6, 0x35, 0xCF, 0x84, 0x65, 0x3A, 0x56, 0xD7, 0xC6,
    ]
    for secret in ["ABCDEFGHIJKLMNOPQRSTUVWXYZ", "ABCDEFGHIJKLMNOPQRSTUVWXYZ======", "abcdefghijklmnopqrstuvwxyy"] {
      #expect(try Self.read("secret=\(secret)").secret.withExposedSecret { Array($0) } == octets)
    }
    #expect(try Self.read("secret=77").secret.withExposedSecret { Array($0) } == [0xFF])
    #expect(try Self.read("secret=7777777").secret.withExposedSecret { Array($0) } == [0xFF, 0xFF, 0xFF, 0xFF])
  }

  @Test("Has the issuer in clear, unlike a combined one") func hasTheIssuerInClearUnlikeACombinedOne() throws {
    let uri = try RegistrationURI("otpauth://totp/ann?secret=MFRGG&issuer=Ex+%C3%84")
    #expect(uri.issuer == "Ex+Ä" && uri.accountName == "ann")
  }

  @Test(
    "That is damaged is refused",
    arguments: [
      ("", RegistrationURI.ParseError.missing("secret")), ("secret=", .missing("secret")),
      ("secret=M", .malformed("secret")), ("secret=MFR", .malformed("secret")),
      ("secret=MFRGGZ", .malformed("secret")), ("secret=MFRGGZDFM", .malformed("secret")),
      ("secret=MFRGG0", .malformed("secret")), ("secret=MFRG1", .malformed("secret")),
      ("secret=--", .malformed("secret")),
      ("secret=MFR%C5%BFG", .malformed("secret")), ("secret=MF==RGG", .malformed("secret")),
      ("secret=MFRGG&digits=7", .malformed("digits")), ("secret=MFRGG&digits=six", .malformed("digits")),
      ("secret=MFRGG&digits=-6", .malformed("digits")), ("secret=MFRGG&period=0", .malformed("period")),
      ("secret=MFRGG&period=-30", .malformed("period")), ("secret=MFRGG&period=30s", .malformed("period")),
      ("secret=MFRGG&period=99999999999999999999", .malformed("period")),
      ("secret=MFRGG&algorithm=sha3", .malformed("algorithm")), ("secret=MFRGG&version=2", .version("2")),
      ("secret=MFRGG&secret=MFRGG", .repeated("secret")),
      // As privacyIDEA and eduMFA write it.
      ("secret=MFRGG&digits=6&2step_salt=8&2step_output=20&2step_difficulty=10000", .twoStep),
      ("secret=MFRGG&2step_salt=", .twoStep), ("secret=MFRGG&app_force_unlock=face", .unknownUnlock("face")),
    ])
  func thatIsDamagedIsRefused(query: String, parseError: RegistrationURI.ParseError) {
    #expect(throws: parseError) { try Self.read(query) }
  }

  @Test("Counts from a number that there is", arguments: ["-1", "+1", "x", "9223372036854775808", "1e3"])
  func countsFromANumberThatThereIs(counter: String) {
    #expect(throws: RegistrationURI.ParseError.malformed("counter")) {
      try Self.read("secret=MFRGG&counter=\(counter)", host: "hotp")
    }
  }
}
