// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Testing

@Suite("AES-256-GCM", .timeLimit(.minutes(5))) struct AEADTests {
  /// McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test cases 13 to 16, also published by NIST.
  static let vectors: [(key: String, nonce: String, context: String, plain: String, cipher: String, tag: String)] = [
    (zeros(32), zeros(12), "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
    (
      zeros(32), zeros(12), "", zeros(16), "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"
    ),
    (
      key, "cafebabefacedbaddecaf888", "", plain + "1aafd255", cipher + "898015ad", "b094dac5d93471bdec1a502270e3cc6c"
    ),
    (
      key, "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2", plain, cipher,
      "76fc6ece0f4e1768cddf8853bb2d551b"
    ),
  ]

  @Test("Decrypts the published ciphertexts, and none with one bit changed", arguments: vectors)
  func decryptsThePublishedCiphertextsAndNoneWithOneBitChanged(
    key: String, nonce: String, context: String, plain: String, cipher: String, tag: String
  ) throws {
    let box = hex(nonce + cipher + tag)
    let key = hex(key)
    let context = hex(context)
    #expect(try exposed(AES256GCM.open(box, key: secret(key), context: context)) == hex(plain))
    let wrong =
      flips(of: box).map { ($0, key, context) } + flips(of: key).map { (box, $0, context) }
      + flips(of: context).map { (box, key, $0) }
      + [(box, key, context + [0]), (Array(box.dropLast()), key, context), (box + [0], key, context)]
    for (box, key, context) in wrong where box.count >= 28 {
      #expect(throws: CryptographyError.notAuthentic) {
        try AES256GCM.open(box, key: secret(key), context: context)
      }
    }
  }

  @Test("Decrypts its own ciphertexts, no two of which are equal", arguments: [0, 1, 16, 5_000])
  func decryptsItsOwnCiphertextsNoTwoOfWhichAreEqual(count: Int) throws {
    let key = Random.secret(32)
    let plain = Random.bytes(count)
    let context = Array("where it belongs".utf8)
    let boxes = try (0..<4).map { _ in try AES256GCM.seal(secret(plain), key: key, context: context) }
    for box in boxes {
      #expect(box.count == 12 + count + 16)
      #expect(try exposed(AES256GCM.open(box, key: key, context: context)) == plain)
      #expect(throws: CryptographyError.notAuthentic) { try AES256GCM.open(box, key: key, context: []) }
    }
    #expect(Set(boxes.map { Array($0[..<12]) }).count == 4)
  }

  @Test("Rejects ciphertexts shorter than the tag, and keys of another size")
  func rejectsCiphertextsShorterThanTheTagAndKeysOfAnotherSize() throws {
    let box = try AES256GCM.seal(secret([1, 2, 3]), key: secret(hex(Self.key)), context: [])
    for count in 0..<28 {
      #expect(throws: CryptographyError.malformed("ciphertext of \(count) bytes")) {
        try AES256GCM.open(Array(box[..<count]), key: secret(hex(Self.key)), context: [])
      }
    }
    for count in [0, 16, 24, 31, 33] {
      let key = secret([UInt8](repeating: 1, count: count))
      #expect(throws: CryptographyError.self) { try AES256GCM.seal(secret([1]), key: key, context: []) }
      #expect(throws: CryptographyError.self) { try AES256GCM.open(box, key: key, context: []) }
    }
  }

  private static let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
  private static let plain = """
    d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657\
    ba637b39
    """
  private static let cipher = """
    522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0a\
    bcc9f662
    """
  private static func zeros(_ count: Int) -> String { String(repeating: "00", count: count) }
}
