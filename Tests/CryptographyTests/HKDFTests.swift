// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets
import Testing

@Suite("Key derivation", .timeLimit(.minutes(5))) struct HKDFTests {
  /// An independent implementation of RFC 5869 §2, based on HMAC, which has its own test vectors.
  private func reference(_ key: [UInt8], salt: [UInt8], info: [UInt8], count: Int) -> [UInt8] {
    let extracted = secret(HMACSHA256.authenticate(key, key: secret(salt)))
    var blocks: [[UInt8]] = []
    while blocks.count * 32 < count {
      blocks.append(
        HMACSHA256.authenticate((blocks.last ?? []) + info + [UInt8(blocks.count + 1)], key: extracted))
    }
    return Array(blocks.joined().prefix(count))
  }

  /// RFC 5869 appendix A.1 and A.2. Their `info` is not text, so they test the reference implementation.
  @Test("The reference is HKDF") func referenceIsHKDF() {
    #expect(
      reference([UInt8](repeating: 0x0B, count: 22), salt: Array(0...0x0C), info: Array(0xF0...0xF9), count: 42)
        == hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"))
    #expect(
      reference(Array(0...0x4F), salt: Array(0x60...0xAF), info: Array(0xB0...0xFF), count: 82)
        == hex(
          """
          b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f
          09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87
          """))
  }

  /// RFC 5869 appendix A.3.
  @Test("Without salt and info") func withoutSaltAndInfo() {
    let derived = HKDF.derive(secret([UInt8](repeating: 0x0B, count: 22)), info: "", count: 42)
    #expect(
      exposed(derived) == hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"))
  }

  @Test("With salt, info and any length", arguments: ["", "approval-token/vault/seal/v1", "é"], [0, 13, 80])
  func withSaltInfoAndAnyLength(info: String, saltCount: Int) {
    let key = Array(0...0x4F) as [UInt8]
    let salt = Array(0x60..<0x60 + UInt8(saltCount))
    for count in [1, 31, 32, 33, 255] {
      let derived = HKDF.derive(secret(key), salt: salt, info: info, count: count)
      #expect(exposed(derived) == reference(key, salt: salt, info: Array(info.utf8), count: count))
    }
  }

  @Test("Derives a different key for each purpose, salt and key") func derivesADifferentKeyForEachPurposeSaltAndKey() {
    let key = secret(Array(0...31))
    let derived = [
      HKDF.derive(key, info: "a"), HKDF.derive(key, info: "b"), HKDF.derive(key, salt: [1], info: "a"),
      HKDF.derive(secret(Array(1...32)), info: "a"),
    ]
    #expect(Set(derived.map(exposed)).count == 4)
    #expect(derived.allSatisfy { $0.count == 32 })
  }
}
