// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets
import Testing

@Suite("One-time passwords", .timeLimit(.minutes(5))) struct OneTimePasswordTests {
  typealias Algorithm = OneTimePassword.Algorithm

  private static let ascii20 = Array("12345678901234567890".utf8)
  /// The secret of this project's own test vectors.
  private static let own = bytes(base32: "IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST")!

  private func code(
    _ factor: UInt64, _ secret: [UInt8], _ algorithm: Algorithm = .sha1, digits: Int = 6
  ) throws -> String {
    try OneTimePassword.code(
      factor: factor, secret: SecretBytes(copying: secret), algorithm: algorithm, digits: digits)
  }

  /// RFC 4226, appendix D.
  @Test("Counters give the codes of RFC 4226") func countersGiveTheCodesOfRFC4226() throws {
    let codes = try (0..<10).map { try code($0, Self.ascii20) }
    #expect(
      codes == [
        "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
      ])
  }

  /// RFC 6238, appendix B, with secrets of the length of the digest (erratum 2866).
  @Test(
    "Times give the codes of RFC 6238",
    arguments: [
      (59, "94287082", "46119246", "90693936"),
      (1_111_111_109, "07081804", "68084774", "25091201"),
      (1_111_111_111, "14050471", "67062674", "99943326"),
      (1_234_567_890, "89005924", "91819424", "93441116"),
      (2_000_000_000, "69279037", "90698825", "38618901"),
      (20_000_000_000, "65353130", "77737706", "47863826"),
    ] as [(UInt64, String, String, String)])
  func timesGiveTheCodesOfRFC6238(seconds: UInt64, sha1: String, sha256: String, sha512: String) throws {
    for (algorithm, length, expected) in [(Algorithm.sha1, 20, sha1), (.sha256, 32, sha256), (.sha512, 64, sha512)] {
      let secret = (0..<length).map { Self.ascii20[$0 % 20] }
      #expect(try code(seconds / 30, secret, algorithm, digits: 8) == expected, "\(algorithm)")
    }
  }

  @Test(
    "Every digest gives its codes",
    arguments: [
      (Algorithm.sha1, 6, 0, ["467851", "443220", "307694", "553707", "597237"]),
      (.sha1, 8, 0, ["68467851", "74443220", "02307694"]),
      (.sha1, 6, 59_666_670, ["404818"]), (.sha224, 6, 59_666_670, ["882821"]), (.sha256, 6, 59_666_670, ["819780"]),
      (.sha384, 6, 59_666_670, ["162325"]), (.sha512, 6, 59_666_670, ["612623"]), (.md5, 6, 2, ["355679", "600421"]),
    ] as [(Algorithm, Int, UInt64, [String])])
  func everyDigestGivesItsCodes(algorithm: Algorithm, digits: Int, first: UInt64, codes: [String]) throws {
    for (index, expected) in codes.enumerated() {
      #expect(try code(first + UInt64(index), Self.own, algorithm, digits: digits) == expected)
    }
  }

  /// MD5 has 16 bytes; the offsets 13 to 15 would read beyond them.
  @Test("A code that MD5 cannot give is an error") func codeThatMD5CannotGiveIsAnError() throws {
    for factor in [0, 1] as [UInt64] {
      #expect(throws: OneTimePassword.GenerationError.offsetBeyondDigest) { try code(factor, Self.own, .md5) }
    }
    let failures = (0..<1600 as Range<UInt64>).count { (try? code($0, Self.own, .md5)) == nil }
    // About 3 of 16.
    #expect((240...360).contains(failures))
  }

  @Test("Leading zeros are shown") func leadingZerosAreShown() throws {
    let codes = try (0..<200 as Range<UInt64>).map { try code($0, Self.own) }
    #expect(codes.allSatisfy { $0.utf8.count == 6 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    #expect(codes.contains { $0.hasPrefix("0") })
  }
}
