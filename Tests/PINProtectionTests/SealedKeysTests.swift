// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets
import Testing

@testable import PINProtection

@Suite("Sealed keys", .timeLimit(.minutes(5))) struct SealedKeysTests {
  private let keys = Random.secret(100)
  private let sealed: SealedKeys

  init() throws { sealed = try SealedKeys.seal(keys, under: pin("13579"), binding: binding, parameters: cheap) }

  @Test("Open only with their PIN on their device") func openOnlyWithTheirPINOnTheirDevice() throws {
    let stored = try SealedKeys(encoded: sealed.encoded)
    #expect(same(try #require(try stored.open(with: pin("13579"), binding: binding)), keys))
    for digits in ["13578", "1357", "135790", "00000"] {
      #expect(try stored.open(with: pin(digits), binding: binding) === nil, "\(digits)")
    }
    #expect(try stored.open(with: pin("13579"), binding: Random.secret(32)) === nil)
  }

  /// A changed byte has the effect of a wrong PIN (parameters, salt, commitment) or of damage (ciphertext).
  @Test("Never give other keys for a changed byte") func neverGiveOtherKeysForAChangedByte() throws {
    let good = bytes(sealed.encoded)
    for index in good.indices {
      var bad = good
      bad[index] ^= 0x10
      let found = try? SealedKeys(encoded: secret(bad)).open(with: pin("13579"), binding: binding)
      #expect(found === nil, "byte \(index)")
    }
    #expect(throws: CryptographyError.notAuthentic) {
      try SealedKeys(encoded: secret(good.dropLast() + [good.last! ^ 1])).open(with: pin("13579"), binding: binding)
    }
  }

  @Test("Are rejected in any other form") func areRejectedInAnyOtherForm() {
    let good = bytes(sealed.encoded)
    for bad in [[], Array(good[..<51]), [0] + good.dropFirst(), [1, 64] + good.dropFirst(2)] {
      #expect(throws: CryptographyError.self, "\(bad)") { try SealedKeys(encoded: secret(bad)) }
    }
    #expect(throws: CryptographyError.malformed("ciphertext of 27 bytes")) {
      try SealedKeys(encoded: secret(Array(good[..<79]))).open(with: pin("13579"), binding: binding)
    }
  }
}
