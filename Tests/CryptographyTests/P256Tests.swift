// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenSSLProgram
import Secrets
import Testing

@Suite("P-256", .timeLimit(.minutes(5))) struct P256Tests {
  /// RFC 6979 appendix A.2.5, SHA-256. In the second vector, s begins with a zero nibble.
  @Test(
    "Accepts the published signatures, and none with one bit changed",
    arguments: [
      (
        "sample", "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
        "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"
      ),
      (
        "test", "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
        "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083"
      ),
    ])
  func acceptsThePublishedSignaturesAndNoneWithOneBitChanged(message: String, r: String, s: String) throws {
    let key = try P256PublicKey(
      x: hex("60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6"),
      y: hex("7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299"))
    let signature = hex(r + s)
    let message = Array(message.utf8)
    #expect(key.isValidSignature(signature, for: message))
    for wrong in flips(of: signature) { #expect(!key.isValidSignature(wrong, for: message)) }
    for wrong in flips(of: message) { #expect(!key.isValidSignature(signature, for: wrong)) }
    for wrong in [[], Array(signature.dropLast()), signature + [0], [UInt8](repeating: 0, count: 64)] {
      #expect(!key.isValidSignature(wrong, for: message))
    }
    #expect(!(try P256PrivateKey()).publicKey.isValidSignature(signature, for: message))
  }

  @Test("Makes valid signatures of always 64 bytes") func makesValidSignaturesOfAlways64Bytes() throws {
    let key = try P256PrivateKey()
    // Of 600 signatures about 4 have an r or s with a leading zero byte.
    for number in 0..<600 {
      let message = Array("message \(number)".utf8)
      let signature = try key.signature(for: message)
      #expect(signature.count == 64)
      #expect(key.publicKey.isValidSignature(signature, for: message))
    }
  }

  @Test("Keeps a key through export and import") func keepsAKeyThroughExportAndImport() throws {
    let key = try P256PrivateKey()
    let copy = try P256PrivateKey(secret: key.exportedSecret())
    #expect(copy.publicKey == key.publicKey)
    #expect(key.publicKey.isValidSignature(try copy.signature(for: [1]), for: [1]))
    #expect(try P256PrivateKey().publicKey != key.publicKey)
    #expect(try P256PublicKey(x: key.publicKey.x, y: key.publicKey.y) == key.publicKey)
  }

  @Test("Never makes a valid signature with a stored scalar that was changed") func changedSecrets() throws {
    let key = try P256PrivateKey()
    let bytes = try key.exportedSecret().withExposedSecret { Array($0) }
    #expect(bytes.count == 121)
    let scalar = 7..<39
    var others = 0
    for wrong in flips(of: bytes) + (0..<bytes.count).map({ Array(bytes.prefix($0)) }) + [bytes + [0]] {
      // Some changes of the rest are formats that OpenSSL reads, too.
      guard let copy = try? P256PrivateKey(secret: SecretBytes(copying: wrong)) else { continue }
      let isSame = wrong[scalar] == bytes[scalar]
      if !isSame { others += 1 }
      #expect(key.publicKey.isValidSignature(try copy.signature(for: [1]), for: [1]) == isSame)
    }
    #expect(others > 200)
  }

  @Test("Rejects points that are not on the curve") func rejectsPointsThatAreNotOnTheCurve() throws {
    let key = try P256PrivateKey().publicKey
    let zero = [UInt8](repeating: 0, count: 32)
    let ones = [UInt8](repeating: 0xFF, count: 32)
    for (x, y) in [(zero, zero), (ones, ones), (key.x, key.x), (key.x, zero)] + flips(of: key.y).map({ (key.x, $0) }) {
      #expect(throws: CryptographyError.malformed("P-256 public key: not a point of the curve")) {
        try P256PublicKey(x: x, y: y)
      }
    }
    #expect(throws: CryptographyError.malformed("P-256 coordinates of 31 and 32 bytes")) {
      try P256PublicKey(x: Array(key.x.dropLast()), y: key.y)
    }
  }

  /// Generated with `openssl ecparam -genkey -noout -outform DER` and `openssl genpkey`, only for this test.
  @Test(
    "Rejects private keys of another kind",
    arguments: [
      (
        "secp256k1",
        """
        MHQCAQEEII7LQApN5fx0HxbKjDIXzKEUJ65uuwyuASAwXQvsYa/ooAcGBSuBBAAKoUQDQgAE0iuwnbsNFF/XqoHgT9DeDlPb\
        L8m4R3FbgJN1Suoj5fP6YUdokbrvdCRXQ13hCltSZPNkZxugYhwoA/8EN+kKEg==
        """
      ),
      (
        "secp384r1",
        """
        MIGkAgEBBDDL1sGXYab0fRsZzKlmQnOQJTQf6k6yjQWqUPraIrmJRz6Z0K2jmYw5FzOhqtFkSYegBwYFK4EEACKhZANiAASU\
        sfsIa6kqwqyULCjOiAKzgnwVhXM9tCU6bvE/qFhyFdyTwSX5Osq2gMdO2netYXZIfQ4BrXhNI6mh0OtS+dGMYUngbv25syvY\
        9P+jirgCvCnMEA4TA/5PFm5qSQN52qE=
        """
      ),
      (
        "brainpoolP256r1",
        """
        MHgCAQEEIBb8j20WLYqgCrwhR4EcuGPa099JJp/erNtBM3O3nvjboAsGCSskAwMCCAEBB6FEA0IABDxPx711SOv7J1xz7q+g\
        nepETYNc/4UG62z/PVMSbzsQG9EHlQxAa9R5L2fIy4tzKK+zyP6rsnDfpK3BaM2XR5o=
        """
      ),
      ("Ed25519", "MC4CAQAwBQYDK2VwBCIEIJLxgUtnVNNBz6ofZpmYH6BrsWQ339c0l/8g5QgUlBeL"),
      ("nothing", ""), ("noise", "AAAAAAAAAAA="),
    ])
  func rejectsPrivateKeysOfAnotherKind(kind: String, der: String) throws {
    let der = try #require(bytes(base64: der))
    #expect(throws: CryptographyError.self, "\(kind)") { try P256PrivateKey(secret: secret(der)) }
  }
}

@Suite("P-256 for others", .timeLimit(.minutes(5))) struct P256ForOthersTests {
  @Test("The openssl program reads our public key and accepts our DER signatures")
  func opensslProgramReadsOurPublicKeyAndAcceptsOurDERSignatures() throws {
    let openssl = try OpenSSLProgram()
    let key = try P256PrivateKey()
    try openssl.write(key.publicKey.subjectPublicKeyInfo, to: "public.der")
    try openssl.write(Array("text".utf8), to: "message")
    for _ in 0..<20 {
      try openssl.write(key.derSignature(for: Array("text".utf8)), to: "signature")
      #expect(try openssl.run("dgst -sha256 -verify public.der -keyform DER -signature signature message"))
    }
  }
}
