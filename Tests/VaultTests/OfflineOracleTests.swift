// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import OfflineAttack
import Secrets
import Testing
import Vault

/// An attacker has the whole SD card, every byte that was ever written to it, the device secret, and time to try all
/// PINs. Key derivations are cheap here (N = 2 and 16) so that the test can do the same; N changes the cost of a guess,
/// not what it reveals.
@Suite("Offline, with everything that was ever on the SD card", .timeLimit(.minutes(5))) struct OfflineOracleTests {
  @Test("Nothing distinguishes five-digit PINs where the server verifies them")
  func nothingDistinguishesFiveDigitPINsWhereTheServerVerifiesThem() async throws {
    let life = try ServerVerifiedLifetime()
    try life.enroll(alice, "13579")
    // The same user chose the same PIN again.
    try life.enroll(bob, "13579")
    try life.answer(alice, "13579", "accepted")
    for wrong in ["13578", "00000"] { try life.answer(alice, wrong, "wrong PIN") }
    try life.change(alice, to: "86420")
    try life.change(alice, to: "55555", isCommitted: false)
    // The same PIN, with another cost.
    try life.change(alice, to: "86420", parameters: Scrypt.Parameters(cost: 16, blockSize: 1, parallelization: 1))
    try life.change(alice, to: "13579")
    try life.answer(alice, "86420", "wrong PIN")
    try life.vault.wipe(account: bob, entry(.wiped, bob))

    var loot = try life.loot()
    let attack = await OfflineAttack(on: loot, pins: OfflineAttack.fiveDigits)
    // The loot contains all tokens, including deleted ones, and the formula is right: only the PIN is unknown. A random
    // byte sequence can look like one more token.
    #expect(attack.blobCount >= life.wraps.count)
    for (token, pin) in life.wraps { #expect(attack.unwraps(bytes(token), with: pin)) }

    #expect(await attack.signs() == [])
    for offset in [0, 13, 29] {
      let (found, expected) = attack.coincidences(at: offset)
      #expect(abs(Double(found) - expected) < 6 * expected.squareRoot(), "\(found), chance makes \(expected)")
    }

    // Knowledge keys take ten times as long as the other checks: every fiftieth PIN, and the PINs that were used.
    loot.identities = ["client profile"]
    let some = Set(stride(from: 0, to: 100_000, by: 50).map { OfflineAttack.fiveDigits[$0] } + life.wraps.map(\.pin))
    #expect(await OfflineAttack(on: loot, pins: some.sorted()).signs() == [])
  }

  /// Among enough random bytes, some look like a token that would need a hundred thousand derivations of 64 MiB.
  @Test("What only looks like a token keeps the thief from nothing")
  func whatOnlyLooksLikeATokenKeepsTheThiefFromNothing() async throws {
    let life = try ServerVerifiedLifetime()
    try life.enroll(alice, "13579")
    var loot = try life.loot()
    let count = await OfflineAttack(on: loot, pins: []).blobCount
    loot.add(opened: [1, 10, 32, 16] + [UInt8](repeating: 7, count: 48))
    #expect(await OfflineAttack(on: loot, pins: []).blobCount == count)
  }

  /// The same program, in a build that wraps one token twice.
  @Test(
    "One token wrapped twice reveals its PINs",
    arguments: [("13579", "the same PIN, a new salt"), ("86420", "another PIN")])
  func oneTokenWrappedTwiceRevealsItsPINs(newPIN: String, what: String) async throws {
    let life = try ServerVerifiedLifetime()
    try life.enroll(alice, "13579")
    try life.change(alice, to: newPIN, token: life.token(of: alice))
    // A fifth of the PINs is enough to show that the attack finds the sign.
    let pins = OfflineAttack.fiveDigits.filter { $0.hasSuffix("9") || $0.hasSuffix("0") }
    let attack = await OfflineAttack(on: try life.loot(), pins: pins)
    let signs = await attack.signs()
    #expect(!signs.isEmpty && signs.allSatisfy { Set($0.pins) == ["13579", newPIN] }, "\(what): \(signs)")
  }

  /// Every other sign that the attack knows is shown to it once.
  @Test("A mistake reveals the PIN", arguments: Mistake.allCases) func mistakeRevealsThePIN(mistake: Mistake)
    async throws
  {
    let life = try ServerVerifiedLifetime()
    let token = Random.secret(32)
    try life.enroll(alice, "00357", token: mistake.made(of: token))
    try life.vault.record(entry(.settled, alice, mistake.note(of: token)))
    if mistake == .related { try life.change(alice, to: "00357", token: mistake.next(after: life.token(of: alice))) }
    var loot = try life.loot()
    loot.identities = ["client profile"]
    if let left = mistake.leftOnTheCard(of: token) { loot.add(opened: left) }
    let attack = await OfflineAttack(on: loot, pins: Array(OfflineAttack.fiveDigits[..<500]))
    let signs = await attack.signs()
    #expect(!signs.isEmpty && signs.allSatisfy { Set($0.pins) == ["00357"] }, "\(signs)")
  }

  /// A limit of the form without a verifying server: see docs/pin.md.
  @Test("Where the token verifies it, trying all finds the PIN") func whereTheTokenVerifiesItTryingAllFindsThePIN()
    throws
  {
    let life = try ServerVerifiedLifetime()
    try life.vault.put(account(alice))
    try life.vault.setPIN(of: alice, to: pin("13579"), keys: secrets("keys"))
    for wrong in 1...2 { #expect(try life.vault.unlock(alice, "0000\(wrong)").text.hasPrefix("wrong")) }
    let loot = try life.loot()
    let found = loot.opened.compactMap {
      OfflineAttack.pin(ofSealedKeys: $0, binding: loot.binding, pins: OfflineAttack.fiveDigits)
    }
    #expect(found.map(\.pin) == ["13579"])
    #expect(found.map(\.derivations) == [13580])
  }
}

/// Mistakes that reveal a PIN and that this token does not make.
enum Mistake: CaseIterable {
  case text, checksum, digest, biased, related, keptToken, keptDigest, keptKnowledgeKey, logged

  /// The token that is wrapped instead of 32 random bytes.
  func made(of token: SecretBytes) -> SecretBytes {
    let random = bytes(token)
    return switch self {
    case .text: SecretBytes(copying: random.map { 0x30 + $0 % 64 })
    case .checksum: SecretBytes(copying: random[..<28] + crc32(random[..<28]))
    case .digest: SecretBytes(copying: random[..<28] + SHA256.hash(Array(random[..<28]))[..<4])
    case .biased: SecretBytes(copying: random.map { $0 & 0x11 })
    default: token
    }
  }

  /// A token that is derived from the previous one instead of random.
  func next(after token: SecretBytes) -> SecretBytes {
    SecretBytes(copying: bytes(token)[..<31] + [bytes(token)[31] &+ 1])
  }

  func leftOnTheCard(of token: SecretBytes) -> [UInt8]? {
    switch self {
    case .keptToken: [7, 7, 7] + bytes(token)
    case .keptDigest: SHA256.hash(bytes(token))
    case .keptKnowledgeKey:
      try? Ed25519.PrivateKey(
        seed: HKDF.derive(token, salt: Array("client profile".utf8), info: "approval-token/knowledge/v1")
      ).publicKey.bytes
    default: nil
    }
  }

  func note(of token: SecretBytes) -> String { self == .logged ? "RT \(bytes(token).lowercaseHex)" : "accepted" }
}

/// ISO 3309, little endian, bit by bit.
private func crc32(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
  var remainder: UInt32 = 0xFFFF_FFFF
  for byte in bytes {
    remainder ^= UInt32(byte)
    for _ in 0..<8 { remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0xEDB8_8320 : remainder >> 1 }
  }
  return withUnsafeBytes(of: (~remainder).littleEndian) { Array($0) }
}
