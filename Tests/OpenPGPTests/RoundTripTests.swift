// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@testable import OpenPGP

@Suite(.timeLimit(.minutes(5))) struct RoundTripTests {
  static let one = try! OpenPGPKey.generate(userID: "one", at: 1_800_000_000)
  static let other = try! OpenPGPKey.generate(userID: "other", at: 1_800_000_000)

  /// Bytes with a period of 256, in which each value occurs once.
  private static let pattern = (0..<262_144 + 256).map { UInt8(truncatingIfNeeded: $0 &* 31) }

  // librnp reads in blocks of 32 KiB. Sizes near a block boundary exercise separate code paths.
  @Test("A sealed message is opened by the peer", arguments: [1, 2, 22, 191, 192, 1000, 8383, 8384, 65_536, 262_144])
  func aSealedMessageIsOpenedByThePeer(size: Int) throws {
    try expectRoundTrip(size: size)
  }

  @Test("Content may end anywhere near a block's end") func contentMayEndAnywhereNearABlocksEnd() throws {
    for size in 32_768 - 320...32_768 + 40 { try expectRoundTrip(size: size) }
  }

  private func expectRoundTrip(size: Int) throws {
    let plaintext = Array(Self.pattern[(size % 256)..<(size % 256 + size)])
    let sealed = try Self.one.seal(plaintext, to: Self.other.certificate)
    #expect(try Self.other.open(sealed, from: Self.one.certificate) == plaintext, "\(size) bytes")
  }

  @Test("The limit is exact") func theLimitIsExact() throws {
    let sealed = try Self.one.seal(Array(repeating: 7, count: 5000), to: Self.other.certificate)
    #expect(try Self.other.open(sealed, from: Self.one.certificate, limit: 5000).count == 5000)
    for limit in [4999, 1, 0, -1, -100_000] {
      #expect(throws: OpenPGPError.tooLarge(limit: limit)) {
        try Self.other.open(sealed, from: Self.one.certificate, limit: limit)
      }
    }
  }

  @Test("A stored key opens messages sealed to it") func aStoredKeyOpensMessagesSealedToIt() throws {
    let stored = Self.other.secret.withExposedSecret { Array($0) }
    let restored = try OpenPGPKey(secret: SecretBytes(copying: stored))
    #expect(restored.certificate == Self.other.certificate)
    let sealed = try Self.one.seal([1, 2, 3], to: Self.other.certificate)
    #expect(try restored.open(sealed, from: Self.one.certificate) == [1, 2, 3])
    #expect(try Self.one.open(restored.seal([4], to: Self.one.certificate), from: restored.certificate) == [4])
  }

  /// Fails if the former peer stays loaded.
  @Test("A key that is loaded for one peer serves several in turn, and takes no message of one for another's")
  func onePeerAtATime() throws {
    let key = try OpenPGPKey(secret: Self.one.secret, peers: 1)
    let peers = try [Self.other, Self.one] + (0..<3).map { try OpenPGPKey.generate(userID: "peer \($0)") }
    for round in 0..<3 {
      for (index, peer) in peers.enumerated() {
        let plaintext = [UInt8(index), UInt8(round)]
        let message = try peer.seal(plaintext, to: key.certificate)
        #expect(try key.open(message, from: peer.certificate) == plaintext)
        #expect(try peer.open(key.seal(plaintext, to: peer.certificate), from: key.certificate) == plaintext)
        for other in peers where other.certificate != peer.certificate {
          #expect(throws: OpenPGPError.self) { try key.open(message, from: other.certificate) }
          try key.withKeyring(for: other.certificate, at: nil) { (keyring, _) throws(OpenPGPError) in
            guard peer.certificate != key.certificate else { return }
            #expect(throws: OpenPGPError.self) { _ = try keyring.key(peer.certificate.fingerprint).pointer }
          }
        }
      }
    }
  }

  @Test("At the limit, the peer that was unused for longest is replaced") func leastRecentlyUsed() throws {
    let key = try OpenPGPKey(secret: Self.one.secret, peers: 2)
    let peers = try (0..<3).map { try OpenPGPKey.generate(userID: "peer \($0)").certificate }
    func keyring(for peer: Int) throws -> ObjectIdentifier {
      try key.withKeyring(for: peers[peer], at: nil) { (keyring, _) throws(OpenPGPError) in ObjectIdentifier(keyring) }
    }
    let first = try keyring(for: 0)
    let second = try keyring(for: 1)
    #expect(first != second)
    for (peer, expected) in [(0, first), (2, second), (0, first), (1, second), (2, first)] {
      #expect(try keyring(for: peer) == expected)
    }
  }

  @Test("One key serves more peers concurrently than the cache holds")
  func oneKeyServesMorePeersConcurrentlyThanTheCacheHolds() async throws {
    let peers = try (0..<12).map { try OpenPGPKey.generate(userID: "peer \($0)") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, peer) in peers.enumerated() {
        group.addTask {
          for round in 0..<5 {
            let plaintext = [UInt8(index), UInt8(round)]
            let asked = try Self.one.seal(plaintext, to: peer.certificate)
            #expect(try peer.open(asked, from: Self.one.certificate) == plaintext)
            let answered = try peer.seal(plaintext, to: Self.one.certificate)
            #expect(try Self.one.open(answered, from: peer.certificate) == plaintext)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("An empty plaintext is not sealed") func anEmptyPlaintextIsNotSealed() {
    #expect(throws: OpenPGPError.unsupported("empty plaintext")) {
      try Self.one.seal([], to: Self.other.certificate)
    }
  }
}
