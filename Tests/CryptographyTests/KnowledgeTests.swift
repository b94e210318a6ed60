// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets
import Testing

@Suite("Ed25519 signatures", .timeLimit(.minutes(5))) struct Ed25519SignaturesTests {
  /// RFC 8032 §7.1: TEST 1 to 3.
  @Test(
    "Are RFC 8032's",
    arguments: [
      (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
      ),
      (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
      ),
      (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
      ),
    ])
  func areRFC8032s(seed: String, publicKey: String, message: String, signature: String) throws {
    let key = try Ed25519.PrivateKey(seed: secret(hex(seed)))
    #expect(try key.publicKey.bytes == hex(publicKey))
    #expect(try key.signature(for: hex(message)) == hex(signature))
    #expect(try key.publicKey.isValidSignature(hex(signature), for: hex(message)))
    #expect(try !key.publicKey.isValidSignature(hex(signature), for: hex(message) + [0]))
    #expect(try !key.publicKey.isValidSignature(Array(hex(signature).dropLast()), for: hex(message)))
  }

  @Test("Reject a seed or key of another length", arguments: [0, 31, 33]) func rejectASeedOrKeyOfAnotherLength(
    count: Int
  ) {
    #expect(throws: CryptographyError.malformed("Ed25519 seed of \(count) bytes")) {
      try Ed25519.PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 1, count: count)))
    }
    #expect(throws: CryptographyError.malformed("Ed25519 public key of \(count) bytes")) {
      try Ed25519.PublicKey(bytes: [UInt8](repeating: 1, count: count))
    }
  }
}

@Suite("scrypt", .timeLimit(.minutes(5))) struct ScryptTests {
  /// RFC 7914 §12. The fourth of its vectors needs 1 GiB, more than is permitted here.
  @Test(
    "Is RFC 7914's",
    arguments: [
      (
        "", "", 16 as UInt64, 1 as UInt64, 1 as UInt64,
        "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
      ),
      (
        "password", "NaCl", 1024, 8, 16,
        "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
      ),
      (
        "pleaseletmein", "SodiumChloride", 16384, 8, 1,
        "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
      ),
    ])
  func isRFC7914s(password: String, salt: String, n: UInt64, r: UInt64, p: UInt64, expected: String) throws {
    let derived = try Scrypt.derive(
      secret(Array(password.utf8)), salt: Array(salt.utf8),
      parameters: Scrypt.Parameters(cost: n, blockSize: r, parallelization: p), count: 64)
    #expect(exposed(derived) == hex(expected))
  }

  @Test(
    "Rejects parameters of a damaged record",
    arguments: [
      (0 as UInt64, 8 as UInt64, 1 as UInt64), (1, 8, 1), (24, 8, 1), (1 << 21, 1, 1), (1 << 15, 0, 1), (1 << 15, 8, 0),
      (1 << 20, 8, 1), (UInt64.max, UInt64.max, UInt64.max),
    ])
  func rejectsParametersOfADamagedRecord(n: UInt64, r: UInt64, p: UInt64) {
    #expect(throws: CryptographyError.malformed("scrypt parameters N=\(n) r=\(r) p=\(p)")) {
      try Scrypt.derive(
        secret([1]), salt: [], parameters: Scrypt.Parameters(cost: n, blockSize: r, parallelization: p))
    }
  }
}
