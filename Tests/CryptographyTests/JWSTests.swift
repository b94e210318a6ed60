// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Testing

@Suite("A signed token", .timeLimit(.minutes(5))) struct JWSTests {
  /// RFC 7515 appendix A.3.
  private static let header = "eyJhbGciOiJFUzI1NiJ9"
  private static let payload = """
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ
    """
  private static let signature =
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
  private static let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
  private static let y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
  private static let d = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"

  private let key: P256PublicKey

  init() throws {
    key = try P256PublicKey(x: try #require(bytes(base64URL: Self.x)), y: try #require(bytes(base64URL: Self.y)))
  }

  @Test("The published one is accepted") func publishedOneIsAccepted() throws {
    let unverified = try JWS.Unverified(parsing: "\(Self.header).\(Self.payload).\(Self.signature)")
    #expect(unverified.header == Array(#"{"alg":"ES256"}"#.utf8))
    let text = "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}"
    #expect(unverified.untrustedPayload == Array(text.utf8))
    #expect(try unverified.payload(verifiedBy: key) == Array(text.utf8))
  }

  @Test("With one letter changed it is not") func withOneLetterChangedItIsNot() throws {
    let token = Array("\(Self.header).\(Self.payload).\(Self.signature)".utf8)
    for index in token.indices {
      var changed = token
      changed[index] = token[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(throws: CryptographyError.self, "letter \(index)") {
        try JWS.Unverified(parsing: String(decoding: changed, as: UTF8.self)).payload(verifiedBy: key)
      }
    }
  }

  /// The published private key, as DER of RFC 5915.
  @Test("A signature of the published key is valid for its public half")
  func signatureOfThePublishedKeyIsValidForItsPublicHalf() throws {
    let scalar = try #require(bytes(base64URL: Self.d))
    let der =
      hex("30770201010420") + scalar + hex("a00a06082a8648ce3d030107 a144034200 04") + key.x + key.y
    let signer = try P256PrivateKey(secret: secret(der))
    #expect(signer.publicKey == key)
    let token = try JWS.sign(header: Array(#"{"alg":"ES256"}"#.utf8), payload: [0, 1, 255], key: signer)
    #expect(token.hasPrefix("\(Self.header).AAH_."))
    #expect(try JWS.Unverified(parsing: token).payload(verifiedBy: key) == [0, 1, 255])
    #expect(throws: CryptographyError.notAuthentic) {
      try JWS.Unverified(parsing: token).payload(verifiedBy: try P256PrivateKey().publicKey)
    }
  }

  @Test(
    "Text other than three Base64url parts is rejected",
    arguments: [
      "", ".", "..", "...", "a.b.c", "\(header).\(payload)", "\(header).\(payload).\(signature).",
      "\(header).\(payload).\(signature)=", " \(header).\(payload).\(signature)", "\(header).\(payload).\(signature)\n",
      "\(header).\(payload).+/", String(repeating: "A", count: 16_385),
    ])
  func textOtherThanThreeBase64urlPartsIsRejected(text: String) throws {
    // Three empty parts are well formed, but not signed by any key.
    if text == ".." {
      #expect(throws: CryptographyError.notAuthentic) { try JWS.Unverified(parsing: text).payload(verifiedBy: key) }
    } else {
      #expect(throws: CryptographyError.self) { try JWS.Unverified(parsing: text) }
    }
  }

  @Test("Without a signature nothing is accepted") func withoutASignatureNothingIsAccepted() throws {
    let unsigned = try JWS.Unverified(parsing: "\([UInt8](#"{"alg":"none"}"#.utf8).base64URL).\(Self.payload).")
    #expect(throws: CryptographyError.notAuthentic) { try unsigned.payload(verifiedBy: key) }
  }

  /// RFC 7515 appendix A.1.
  @Test("The published one with a shared secret is accepted only with that secret")
  func publishedOneWithASharedSecretIsAcceptedOnlyWithThatSecret() throws {
    let key = try #require(
      bytes(base64URL: "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"))
    let token =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(Self.payload).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    let unverified = try JWS.Unverified(parsing: token)
    #expect(try unverified.payload(authenticatedBy: secret(key)) == unverified.untrustedPayload)
    let header = Array("{\"typ\":\"JWT\",\r\n \"alg\":\"HS256\"}".utf8)
    #expect(JWS.sign(header: header, payload: unverified.untrustedPayload, secret: secret(key)) == token)
    for other in [key.dropLast() + [0], [UInt8](repeating: 0, count: 32)] {
      #expect(throws: CryptographyError.notAuthentic) { try unverified.payload(authenticatedBy: secret(other)) }
    }
    #expect(throws: CryptographyError.notAuthentic) {
      try JWS.Unverified(parsing: token + "A").payload(authenticatedBy: secret(key))
    }
    #expect(throws: CryptographyError.self) { try unverified.payload(verifiedBy: self.key) }
  }
}
