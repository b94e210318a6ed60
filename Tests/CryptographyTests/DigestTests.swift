// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Testing

@Suite("Digests", .timeLimit(.minutes(5))) struct DigestTests {
  /// FIPS 180-4, as in NIST's "SHA256.pdf" examples.
  @Test(
    "SHA-256",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
    ])
  func sha256(message: String, digest: String) {
    #expect(SHA256.hash(Array(message.utf8)).lowercaseHex == digest)
  }

  /// RFC 7638 §3.1: canonical JSON, SHA-256, Base64url.
  @Test("A key's thumbprint") func keysThumbprint() {
    let modulus = """
      0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknj\
      hMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQ\
      vRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzK\
      nqDKgw
      """
    let canonical = #"{"e":"AQAB","kty":"RSA","n":"\#(modulus)"}"#
    #expect(SHA256.hash(Array(canonical.utf8)).base64URL == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
  }

  /// RFC 4231 §4, without case 5: truncation is not supported.
  static let hmacVectors: [(key: [UInt8], message: [UInt8], tag: String)] = [
    (
      .init(repeating: 0x0B, count: 20), Array("Hi There".utf8),
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    ),
    (
      Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (
      .init(repeating: 0xAA, count: 20), .init(repeating: 0xDD, count: 50),
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
    ),
    (
      Array(0x01...0x19), .init(repeating: 0xCD, count: 50),
      "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
    ),
    (
      .init(repeating: 0xAA, count: 131), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
    (
      .init(repeating: 0xAA, count: 131),
      Array(
        ("This is a test using a larger than block-size key and a larger than block-size data. "
          + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
    ),
  ]

  @Test("HMAC-SHA-256", arguments: hmacVectors)
  func hmacSHA256(key: [UInt8], message: [UInt8], tag: String) {
    #expect(HMACSHA256.authenticate(message, key: secret(key)).lowercaseHex == tag)
    #expect(HMACSHA256.isValid(hex(tag), for: message, key: secret(key)))
  }

  @Test("HMAC-SHA-256 of another message does not pass") func hmacSHA256OfAnotherMessageDoesNotPass() {
    let (key, message, tag) = (secret(Array("Jefe".utf8)), Array("what do ya want".utf8), 32)
    let right = HMACSHA256.authenticate(message, key: key)
    #expect(right.count == tag)
    for wrong in flips(of: right) + [[], Array(right.dropLast()), right + [0]] {
      #expect(!HMACSHA256.isValid(wrong, for: message, key: key))
    }
    for other in flips(of: message) { #expect(!HMACSHA256.isValid(right, for: other, key: key)) }
    #expect(!HMACSHA256.isValid(right, for: message, key: secret(Array("jefe".utf8))))
  }

  @Test(
    "Comparison in constant time is correct",
    arguments: [
      ([], [], true), ([1, 2], [1, 2], true), ([1, 2], [1, 3], false), ([1, 2], [1], false), ([], [0], false),
    ] as [([UInt8], [UInt8], Bool)])
  func comparisonInConstantTimeIsCorrect(one: [UInt8], other: [UInt8], areEqual: Bool) {
    #expect(constantTimeEqual(one, other) == areEqual)
  }
}
