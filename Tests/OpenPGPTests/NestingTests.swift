// SPDX-License-Identifier: Apache-2.0
import OpenPGP
import Testing

/// Malformed contents of an encrypted message, assembled packet by packet.
@Suite(.timeLimit(.minutes(5))) struct NestingTests {
  private let us = try! OpenPGPKey.generate(userID: "us", at: 1_700_000_000)
  private let peer = try! OpenPGPKey.generate(userID: "peer", at: 1_700_000_000)
  private let stranger = try! OpenPGPKey.generate(userID: "stranger", at: 1_700_000_000)
  /// "B", not covered by a signature.
  private let literal: [UInt8] = [0xcb, 7, 0x62, 0, 0, 0, 0, 0, 0x42]

  private func open(_ packets: [[UInt8]]) throws -> [UInt8] {
    let message = Forgery(plaintext: Array(packets.joined()), recipients: [us.certificate], isPackets: true)
    return try us.open(message.message(), from: peer.certificate)
  }

  @Test("Only the one signed literal is released") func onlyTheOneSignedLiteralIsReleased() throws {
    let peers = try signedPackets([0x41], by: peer)
    let strangers = try signedPackets([0x43], by: stranger)
    #expect(try open(peers) == [0x41])

    let wrongSigner = OpenPGPError.wrongSigner(fingerprint: stranger.certificate.fingerprint)
    for (content, error) in [
      ([literal], .unsigned),
      ([literal] + peers, .unsigned),
      (strangers + peers, wrongSigner),
      // The same hash: a signature covers the content and not the packet around it.
      ([strangers[0]] + peers + [strangers[2]], .badSignature),
      ([strangers[0], uncompressed(peers), strangers[2]], .badSignature),
      ([peers[0], peers[1]], .unsigned),
      ([peers[0], literal, peers[2]], .badSignature),
      ([peers[0], peers[1], strangers[2]], wrongSigner),
      ([peers[2], peers[0]], .notIntact),
      (peers + Array(repeating: literal, count: 10_000), .notIntact),
    ] as [([[UInt8]], OpenPGPError)] {
      #expect(throws: error) { try open(content) }
    }
    // librnp ignores some trailing bytes. They are not released.
    for tail in [literal, [1, 2, 3], Array(strangers.joined())] {
      #expect(try open(peers + [tail]) == [0x41])
    }
  }

  /// One-pass packet, literal, signature; each with a one-octet length.
  private func signedPackets(_ plaintext: [UInt8], by signer: OpenPGPKey) throws -> [[UInt8]] {
    var rest = try signed(plaintext, by: signer)[...]
    var packets: [[UInt8]] = []
    while !rest.isEmpty {
      let packet = rest.prefix(2 + Int(rest[rest.startIndex + 1]))
      packets.append(Array(packet))
      rest.removeFirst(packet.count)
    }
    return packets
  }

  /// A compressed packet with algorithm 0 (RFC 9580 §9.4).
  private func uncompressed(_ packets: [[UInt8]]) -> [UInt8] {
    [0xc8, UInt8(packets.joined().count + 1), 0] + Array(packets.joined())
  }

  /// librnp also has this token's own public key, and the key ID is in the unsigned part of a signature.
  @Test("Our own message is not accepted as the peer's") func ourOwnMessageIsNotAcceptedAsThePeers() throws {
    let ours = try signedPackets([0x41], by: us)
    #expect(throws: OpenPGPError.wrongSigner(fingerprint: us.certificate.fingerprint)) { try open(ours) }

    let (ourID, peersID) = (keyID(us), keyID(peer))
    let onePass = ours[0].replacing(ourID, with: peersID)
    let signature = ours[2].replacing([9, 16] + ourID, with: [9, 16] + peersID)
    #expect(onePass != ours[0] && signature != ours[2])
    #expect(throws: OpenPGPError.wrongSigner(fingerprint: us.certificate.fingerprint)) {
      try open([onePass, ours[1], signature])
    }
  }

  /// The last eight octets of the fingerprint (RFC 9580 §5.5.4.2).
  private func keyID(_ key: OpenPGPKey) -> [UInt8] {
    let digits = Array(key.certificate.fingerprint.suffix(16))
    return stride(from: 0, to: 16, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }
  }
}
