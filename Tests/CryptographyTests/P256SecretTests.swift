// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@testable import Cryptography

@Suite("Stored P-256 keys", .timeLimit(.minutes(5))) struct P256SecretTests {
  @Test("An exported key is read without OpenSSL's decoder, and signs") func exported() throws {
    for _ in 0..<20 {
      let key = try P256PrivateKey()
      let read = try #require(P256Secret.key(key.exportedSecret()))
      let signature = try read.signature(for: [1, 2, 3], digest: nil, size: 80)
      #expect(key.publicKey.isValidDERSignature(signature, for: [1, 2, 3]))
    }
  }

  @Test("No other length and no other curve is read, and no point that is not on it") func others() throws {
    let bytes = try P256PrivateKey().exportedSecret().withExposedSecret { Array($0) }
    func isRead(_ bytes: [UInt8]) -> Bool { P256Secret.key(SecretBytes(copying: bytes)) != nil }
    #expect(isRead(bytes))
    for count in 0..<bytes.count { #expect(!isRead(Array(bytes.prefix(count)))) }
    #expect(!isRead(bytes + [0]))
    // All but the scalar and the point, whose first byte says that it is not compressed.
    for index in [0...6, 39...56].joined() {
      var other = bytes
      other[index] ^= 1
      #expect(!isRead(other), "byte \(index)")
    }
    for byte in [UInt8(0), 0xFF] {
      let other = bytes.prefix(57) + [UInt8](repeating: byte, count: 64)
      #expect(!isRead(Array(other)), "a point of bytes \(byte)")
    }
  }
}
