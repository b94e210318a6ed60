// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets
import Testing

@testable import PINProtection

func bytes(_ secret: SecretBytes) -> [UInt8] { secret.withExposedSecret { Array($0) } }

func secret(_ bytes: [UInt8]) -> SecretBytes { SecretBytes(copying: bytes) }

func same(_ one: SecretBytes, _ other: SecretBytes) -> Bool { SecretBytes.constantTimeEqual(one, other) }

/// The cheapest parameters, so that tests are fast.
let cheap = Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1)
let binding = SecretBytes(copying: [UInt8](repeating: 0xD5, count: 32))

@Suite("A wrapped token", .timeLimit(.minutes(5))) struct WrappedTokenTests {
  /// Computed with Python's hashlib.scrypt and hmac by the formula in docs/pin.md: PIN, salt, N, r, p, binding, K,
  /// commitment.
  @Test(
    "Has the key of the published formula",
    arguments: [
      KnownKey(
        pin: "13579", salt: Array(0..<16), n: 16, r: 8, p: 1, binding: [UInt8](repeating: 0xD5, count: 32),
        key: "91c020813e75a131b71554f5e3835522dca9bec31b4f1295ba1e856a28d7aada",
        commitment: "a44babc648f64598bfe13a6e1e4c5a7f0d804564380de1daf5a7a9451390f605"),
      KnownKey(
        pin: "00000", salt: [UInt8](repeating: 0xFF, count: 16), n: 1024, r: 8, p: 2, binding: Array(0..<32),
        key: "5405b89bce9758bb169343a81871193b56522178023ed468ea24772d7305211c",
        commitment: "3998df9d70e95b91cfe9875c31bb71e0c2de10f2325b246f4f6adb25fd9f7618"),
      KnownKey(
        pin: "73519735197351973519735197351942", salt: [UInt8](repeating: 0, count: 16), n: 2, r: 1, p: 1,
        binding: Array(100..<164), key: "37a758fa030007662a083614c7e77038433a1cb7c1a10a14075c652d1c280cc9",
        commitment: "0fd800af01ecfeb2033d7df4d87263396f59c5262d92eb5f93c867a808cbf30b"),
    ])
  func hasTheKeyOfThePublishedFormula(answer: KnownKey) throws {
    let parameters = Scrypt.Parameters(cost: answer.n, blockSize: answer.r, parallelization: answer.p)
    let derivation = KeyDerivation(parameters: parameters, salt: answer.salt)
    let key = try derivation.key(
      from: pin(answer.pin), binding: secret(answer.binding), purpose: "approval-token/pin-wrapped-token/v1")
    #expect(bytes(key).lowercaseHex == answer.key)
    #expect(bytes(KeyCommitment(to: key).bytes).lowercaseHex == answer.commitment)
    // W of an all-zero token is K itself.
    let encoded = [1, UInt8(answer.n.trailingZeroBitCount), UInt8(answer.r), UInt8(answer.p)] + answer.salt
    let wrapped = try WrappedToken(encoded: secret(encoded + [UInt8](repeating: 0, count: 32)))
    let unwrapped = try wrapped.unwrap(with: pin(answer.pin), binding: secret(answer.binding))
    #expect(bytes(unwrapped).lowercaseHex == answer.key)
  }

  @Test("Encrypts other tokens with keys of the same PIN, one for each name") func companions() throws {
    let (token, first, second) = (Random.secret(32), Random.secret(32), Random.secret(32))
    let wrapped = try WrappedToken.wrap(token, under: pin("13579"), binding: binding, parameters: cheap)
    let right = try wrapped.unwrapAll(with: pin("13579"), binding: binding)
    #expect(same(right.token, token))
    let one = try right.masked(first, named: "1")
    let two = try right.masked(second, named: "2")
    let again = try WrappedToken(encoded: wrapped.encoded).unwrapAll(with: pin("13579"), binding: binding)
    #expect(same(try again.masked(one, named: "1"), first))
    #expect(same(try again.masked(two, named: "2"), second))
    // Neither another name nor a wrong PIN, nor the key of the PIN's own token.
    #expect(!same(try again.masked(one, named: "2"), first))
    let wrong = try wrapped.unwrapAll(with: pin("13570"), binding: binding)
    #expect(!same(try wrong.masked(one, named: "1"), first))
    let keys = [bytes(try right.masked(secret([UInt8](repeating: 0, count: 32)), named: "1"))]
    #expect(!keys.contains(bytes(try wrapped.unwrap(with: pin("13579"), binding: binding))))
    #expect(throws: CryptographyError.self) { try right.masked(secret([1]), named: "1") }
  }

  @Test("Gives the token for the right PIN on the right device, otherwise 32 other bytes")
  func givesTheTokenForTheRightPINOnTheRightDeviceOtherwise32OtherBytes() throws {
    let token = Random.secret(32)
    let wrapped = try WrappedToken.wrap(token, under: pin("13579"), binding: binding, parameters: cheap)
    let stored = try WrappedToken(encoded: wrapped.encoded)
    #expect(same(try stored.unwrap(with: pin("13579"), binding: binding), token))
    var seen: Set<[UInt8]> = [bytes(token)]
    for digits in ["13570", "1357", "135790", "00000", "97531"] {
      let other = bytes(try stored.unwrap(with: pin(digits), binding: binding))
      #expect(other.count == 32 && seen.insert(other).inserted, "\(digits)")
    }
    #expect(seen.insert(bytes(try stored.unwrap(with: pin("13579"), binding: Random.secret(32)))).inserted)
  }

  @Test("Has a new salt each time, and nothing besides W depends on the PIN")
  func hasANewSaltEachTimeAndNothingBesidesWDependsOnThePIN() throws {
    let token = Random.secret(32)
    let one = bytes(try WrappedToken.wrap(token, under: pin("13579"), binding: binding, parameters: cheap).encoded)
    let other = bytes(try WrappedToken.wrap(token, under: pin("999999"), binding: binding, parameters: cheap).encoded)
    #expect(one.count == 52 && other.count == 52)
    #expect(one[..<4] == [1, 1, 1, 1] && other[..<4] == one[..<4])
    #expect(one[4..<20] != other[4..<20])
  }

  @Test("Is rejected in any other form") func isRejectedInAnyOtherForm() throws {
    let wrapped = try WrappedToken.wrap(Random.secret(32), under: pin("1"), binding: binding, parameters: cheap)
    let good = bytes(wrapped.encoded)
    for bad in [[], Array(good.dropLast()), good + [0], [0] + good.dropFirst(), [2] + good.dropFirst()] {
      #expect(throws: CryptographyError.self, "\(bad)") { try WrappedToken(encoded: secret(bad)) }
    }
    #expect(throws: CryptographyError.malformed("key derivation parameters")) {
      try WrappedToken(encoded: secret([1, 64] + good.dropFirst(2)))
    }
    // Parameters that scrypt rejects, or that would need too much memory, are rejected before memory is allocated.
    for (index, value) in [(1, 0), (1, 21), (1, 63), (2, 0), (2, 33), (2, 255), (3, 0), (3, 17)] as [(Int, UInt8)] {
      var bad = good
      bad[index] = value
      let damaged = try WrappedToken(encoded: secret(bad))
      #expect(throws: CryptographyError.self, "byte \(index) is \(value)") {
        try damaged.unwrap(with: pin("1"), binding: binding)
      }
    }
  }

  @Test("Is made only from 32 bytes", arguments: [0, 31, 33, 64]) func isMadeOnlyFrom32Bytes(count: Int) {
    #expect(throws: CryptographyError.malformed("refresh token of \(count) bytes")) {
      try WrappedToken.wrap(Random.secret(count), under: pin("13579"), binding: binding, parameters: cheap)
    }
  }

  @Test("Is not bound to a device by less than 32 bytes") func isNotBoundToADeviceByLessThan32Bytes() {
    #expect(throws: CryptographyError.malformed("device binding of 31 bytes")) {
      try WrappedToken.wrap(Random.secret(32), under: pin("13579"), binding: Random.secret(31), parameters: cheap)
    }
  }
}

@Suite("A key commitment", .timeLimit(.minutes(5))) struct KeyCommitmentTests {
  @Test("Matches only its key") func matchesOnlyItsKey() {
    let key = Random.secret(32)
    let commitment = KeyCommitment(to: key)
    #expect(commitment.isValid(by: key))
    for index in 0..<32 {
      var other = bytes(key)
      other[index] ^= 1
      #expect(!commitment.isValid(by: secret(other)))
    }
  }
}

struct KnownKey: Sendable {
  let pin: String
  let salt: [UInt8]
  let n, r, p: UInt64
  let binding: [UInt8]
  let key, commitment: String
}
