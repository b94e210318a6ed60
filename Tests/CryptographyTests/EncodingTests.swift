// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets
import Testing

@Suite("Encodings", .timeLimit(.minutes(5))) struct EncodingsTests {
  /// RFC 4648 §10.
  @Test(
    "Base64",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func base64(plain: String, encoded: String) {
    #expect(Array(plain.utf8).base64 == encoded)
    #expect(bytes(base64: encoded) == Array(plain.utf8))
    let unpadded = String(encoded.prefix { $0 != "=" })
    #expect(Array(plain.utf8).base64URL == unpadded)
    #expect(bytes(base64URL: unpadded) == Array(plain.utf8))
  }

  /// RFC 4648 §10.
  @Test("Hexadecimal", arguments: [("", ""), ("f", "66"), ("foob", "666F6F62"), ("foobar", "666F6F626172")])
  func hexadecimal(plain: String, encoded: String) {
    #expect(Array(plain.utf8).uppercaseHex == encoded)
    #expect(Array(plain.utf8).lowercaseHex == encoded.lowercased())
  }

  /// RFC 4648 §10.
  @Test(
    "Base32",
    arguments: [
      ("", ""), ("f", "MY======"), ("fo", "MZXQ===="), ("foo", "MZXW6==="), ("foob", "MZXW6YQ="), ("fooba", "MZXW6YTB"),
      ("foobar", "MZXW6YTBOI======"),
    ])
  func base32(plain: String, encoded: String) {
    #expect(Array(plain.utf8).base32 == encoded)
    #expect(bytes(base32: encoded) == Array(plain.utf8))
  }

  @Test(
    "Invalid Base32 is rejected",
    arguments: [
      "MY", "MY=====", "my======", "MY=======", "M=======", "MZX=====", "MZ======", "MY======MY======", "========",
      "MZXW6YT1", "MY====== ", "MZXW6Y\u{0}B",
    ])
  func invalidBase32IsRejected(text: String) { #expect(bytes(base32: text) == nil) }

  @Test("The two alphabets differ in two letters") func twoAlphabetsDifferInTwoLetters() {
    #expect(([0xFB, 0xFF, 0xBF] as [UInt8]).base64 == "+/+/")
    #expect(([0xFB, 0xFF, 0xBF] as [UInt8]).base64URL == "-_-_")
    #expect(bytes(base64: "-_-_") == nil)
    #expect(bytes(base64URL: "+/+/") == nil)
  }

  @Test("Every byte and length survives a round trip") func everyByteAndLengthSurvivesARoundTrip() {
    for count in 0...70 {
      let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
      #expect(bytes(base64: plain.base64) == plain)
      #expect(bytes(base64URL: plain.base64URL) == plain)
      #expect(bytes(base32: plain.base32) == plain)
    }
    #expect(bytes(base64: ([UInt8](0...255)).base64) == [UInt8](0...255))
  }

  @Test(
    "Invalid Base64 is rejected",
    arguments: [
      "Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "=Zg=", "====", "Zh==", "Zm9=", "Zm8=\n", " Zm8=", "Zm 8", "Zm8é",
      "Zm8\u{0}",
    ])
  func invalidBase64IsRejected(text: String) { #expect(bytes(base64: text) == nil) }

  @Test(
    "Invalid Base64url is rejected",
    arguments: ["Z", "Zg==", "Zg=", "Zh", "Zm9", "Zm8\n", " Zm8", "Zm9vY", "Z\u{0}", "Zé"])
  func invalidBase64urlIsRejected(text: String) { #expect(bytes(base64URL: text) == nil) }
}

@Suite("Randomness", .timeLimit(.minutes(5))) struct RandomnessTests {
  @Test("Has the requested length, and no obvious pattern") func hasTheRequestedLengthAndNoObviousPattern() {
    for count in [0, 1, 32, 1_000] {
      #expect(Random.bytes(count).count == count)
      #expect(Random.secret(count).count == count)
    }
    #expect(Set((0..<100).map { _ in Random.bytes(16) }).count == 100)
    // The probability of fewer than 200 different values in 1000 random bytes is below 10^-100.
    #expect(Set(Random.bytes(1_000)).count > 200)
    #expect(Set(exposed(Random.secret(1_000))).count > 200)
  }

  /// RFC 9562 §5.4.
  @Test("Makes version 4 UUIDs") func makesVersion4UUIDs() {
    let uuids = (0..<200).map { _ in Random.uuid() }
    #expect(Set(uuids).count == 200)
    for uuid in uuids {
      #expect(
        uuid.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil, "\(uuid)")
    }
    #expect(Set(uuids.map { Array($0)[19] }) == ["8", "9", "a", "b"])
  }
}
