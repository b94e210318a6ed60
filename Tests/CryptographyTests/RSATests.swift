// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenSSLProgram
import Secrets
import Testing

@Suite("RSA", .timeLimit(.minutes(5))) struct RSATests {
  @Test("The openssl program accepts our signatures, for our keys and its own", arguments: [2048, 3072, 4096])
  func opensslProgramAcceptsOurSignaturesForOurKeysAndItsOwn(bits: Int) throws {
    let openssl = try OpenSSLProgram()
    #expect(try openssl.run("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:\(bits) -outform DER -out key.der"))
    let theirs = try RSAPrivateKey(secret: secret(openssl.read("key.der")))
    #expect(try openssl.run("pkey -inform DER -in key.der -pubout -outform DER -out public.der"))
    #expect(try openssl.read("public.der") == theirs.publicKey.subjectPublicKeyInfo)
    let message = Array("nonce|Größe|a|b".utf8)
    try openssl.write(message, to: "message")
    for key in [theirs, try RSAPrivateKey(bits: bits)] {
      #expect(key.publicKey.bits == bits)
      let signature = try key.signature(for: message)
      #expect(signature.count == bits / 8)
      try openssl.write(signature, to: "signature")
      try openssl.write(key.publicKey.subjectPublicKeyInfo, to: "public.der")
      #expect(try openssl.run("dgst -sha256 -verify public.der -keyform DER -signature signature message"))
    }
  }

  @Test("Signatures of the openssl program are accepted, and none with one bit changed")
  func signaturesOfTheOpensslProgramAreAcceptedAndNoneWithOneBitChanged() throws {
    let openssl = try OpenSSLProgram()
    let message = Array("a text".utf8)
    try openssl.write(message, to: "message")
    #expect(try openssl.run("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem"))
    #expect(try openssl.run("rsa -in key.pem -RSAPublicKey_out -outform DER -out public.der"))
    let key = try RSAPublicKey(pkcs1: openssl.read("public.der"))
    #expect(try key.pkcs1 == openssl.read("public.der"))
    #expect(try RSAPublicKey(subjectPublicKeyInfo: key.subjectPublicKeyInfo) == key)
    #expect(try openssl.run("dgst -sha256 -sign key.pem -out signature message"))
    let signature = try openssl.read("signature")
    #expect(key.isValidSignature(signature, for: message))
    for wrong in flips(of: signature).prefix(64) + flips(of: signature).suffix(64) {
      #expect(!key.isValidSignature(wrong, for: message))
    }
    for wrong in flips(of: message) { #expect(!key.isValidSignature(signature, for: wrong)) }
    for wrong in [[], Array(signature.dropLast()), signature + [0]] {
      #expect(!key.isValidSignature(wrong, for: message))
    }
    // The same key and message with another scheme or digest.
    for way in ["-sha256 -sigopt rsa_padding_mode:pss", "-sha1", "-sha512"] {
      #expect(try openssl.run("dgst \(way) -sign key.pem -out signature message"))
      #expect(try !key.isValidSignature(openssl.read("signature"), for: message), "\(way)")
    }
  }

  @Test("Keeps a key through export and import") func keepsAKeyThroughExportAndImport() throws {
    let key = try RSAPrivateKey(bits: 2048)
    let copy = try RSAPrivateKey(secret: key.exportedSecret())
    #expect(copy.publicKey == key.publicKey)
    #expect(try copy.signature(for: [1]) == key.signature(for: [1]))
    #expect(try RSAPrivateKey(bits: 2048).publicKey != key.publicKey)
  }

  @Test(
    "Rejects keys of another kind or size",
    arguments: [
      "-algorithm RSA -pkeyopt rsa_keygen_bits:1024", "-algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048",
      "-algorithm EC -pkeyopt ec_paramgen_curve:P-256", "-algorithm ED25519",
    ])
  func rejectsKeysOfAnotherKindOrSize(kind: String) throws {
    let openssl = try OpenSSLProgram()
    #expect(try openssl.run("genpkey \(kind) -outform DER -out key.der"))
    #expect(try openssl.run("pkey -inform DER -in key.der -pubout -outform DER -out public.der"))
    #expect(throws: CryptographyError.self) { try RSAPrivateKey(secret: secret(openssl.read("key.der"))) }
    #expect(throws: CryptographyError.self) {
      try RSAPublicKey(subjectPublicKeyInfo: openssl.read("public.der"))
    }
  }

  @Test("Generates no key that is weak or too large", arguments: [0, 1024, 2047, 4097, 1 << 40])
  func generatesNoKeyThatIsWeakOrTooLarge(bits: Int) {
    #expect(throws: CryptographyError.malformed("RSA key of \(bits) bits")) { try RSAPrivateKey(bits: bits) }
  }

  @Test("Takes exponents of up to 32 bits, with which a verification is fast")
  func takesShortExponents() throws {
    let key = try RSAPrivateKey(bits: 2048)
    // SEQUENCE and INTEGER have headers of four bytes; the modulus begins with a zero.
    let modulus = Array(key.publicKey.pkcs1[4..<(8 + 257)])
    func der(exponent: [UInt8]) -> [UInt8] {
      let content = modulus + [2, UInt8(exponent.count)] + exponent
      return [0x30, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xff)] + content
    }
    #expect(try RSAPublicKey(pkcs1: der(exponent: [1, 0, 1])) == key.publicKey)
    #expect(throws: Never.self) { try RSAPublicKey(pkcs1: der(exponent: [0, 0xff, 0xff, 0xff, 0xff])) }
    for (exponent, bits) in [([1, 0, 0, 0, 1], 33), (Array(repeating: 0x7f, count: 120), 959)] as [([UInt8], Int)] {
      #expect(throws: CryptographyError.malformed("RSA exponent of \(bits) bits")) {
        try RSAPublicKey(pkcs1: der(exponent: exponent))
      }
    }
  }

  @Test("Rejects public keys with trailing bytes and truncated ones")
  func rejectsPublicKeysWithTrailingBytesAndTruncatedOnes() throws {
    let key = try RSAPrivateKey(bits: 2048).publicKey
    for der in [key.pkcs1 + [0], Array(key.pkcs1.dropLast()), [], key.subjectPublicKeyInfo] {
      #expect(throws: CryptographyError.malformed("RSA public key")) { try RSAPublicKey(pkcs1: der) }
    }
    for der in [key.subjectPublicKeyInfo + [0], Array(key.subjectPublicKeyInfo.dropLast()), [], key.pkcs1] {
      #expect(throws: CryptographyError.malformed("RSA public key")) { try RSAPublicKey(subjectPublicKeyInfo: der) }
    }
  }
}
