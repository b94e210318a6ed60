// SPDX-License-Identifier: Apache-2.0
import OpenPGP
import Testing

@Suite(.timeLimit(.minutes(5))) struct RefusalTests {
  private static let us = key("us")
  private static let peer = key("peer")
  private static let stranger = key("stranger")

  private static func key(_ userID: String) -> OpenPGPKey {
    try! OpenPGPKey.generate(userID: userID, at: 1_400_000_000)
  }

  struct Case: CustomTestStringConvertible {
    let testDescription: String
    let forgery: Forgery
    let error: OpenPGPError

    init(_ description: String, _ error: OpenPGPError, _ change: (inout Forgery) -> Void) {
      var forgery = Forgery(signers: [peer], recipients: [us.certificate])
      change(&forgery)
      (testDescription, self.forgery, self.error) = (description, forgery, error)
    }
  }

  @Test(
    "Rejects a message that is",
    arguments: [
      Case("unsigned", .unsigned) { $0.signers = [] },
      Case("signed by a stranger", .wrongSigner(fingerprint: stranger.certificate.fingerprint)) {
        $0.signers = [stranger]
      },
      Case("signed by ourselves", .wrongSigner(fingerprint: us.certificate.fingerprint)) { $0.signers = [us] },
      Case("signed by the peer and a stranger", .unsupported("2 signatures")) { $0.signers = [peer, stranger] },
      Case("signed by a stranger and the peer", .unsupported("2 signatures")) { $0.signers = [stranger, peer] },
      Case("signed twice by the peer", .unsupported("2 signatures")) { $0.signers = [peer, peer] },
      Case("encrypted to a stranger", .notForUs) { $0.recipients = [stranger.certificate] },
      Case("encrypted to a password", .unsupported("packet 3 in a message")) {
        $0.recipients = []
        $0.password = "open sesame"
      },
      Case("encrypted to us and a password", .unsupported("packet 3 in a message")) { $0.password = "open sesame" },
      Case("encrypted with OCB", .notForUs) { $0.aead = "OCB" },
      Case("encrypted with AES-128", .unsupported("cipher AES128")) { $0.cipher = "AES128" },
      Case("encrypted with Camellia", .unsupported("cipher CAMELLIA256")) { $0.cipher = "CAMELLIA256" },
      Case("signed with SHA-1", .badSignature) { $0.hash = "SHA1" },
      Case("signed with SHA-1 when that was in use", .unsupported("signature with SHA1")) {
        $0.hash = "SHA1"
        $0.creation = 1_500_000_000
      },
      Case("signed before the key was made", .badSignature) { $0.creation = 1_300_000_000 },
      Case("too large", .tooLarge(limit: 1000)) { $0.plaintext = Array(repeating: 7, count: 1001) },
      Case("larger than any message", .tooLarge(limit: 1000)) { $0.plaintext = Array(repeating: 7, count: 20_000) },
      Case("too large once decompressed", .tooLarge(limit: 1000)) {
        $0.plaintext = Array(repeating: 7, count: 1_000_000)
        ($0.compression, $0.compressionLevel) = ("ZLIB", 9)
      },
    ])
  func rejectsAMessageThatIs(_ forged: Case) throws {
    let message = try forged.forgery.message()
    #expect(throws: forged.error) { try Self.us.open(message, from: Self.peer.certificate, limit: 1000) }
  }

  @Test("Opens a message built like ours, compressed, or also for others")
  func opensAMessageBuiltLikeOursCompressedOrAlsoForOthers() throws {
    var forgery = Forgery(signers: [Self.peer], recipients: [Self.us.certificate])
    #expect(try Self.us.open(forgery.message(), from: Self.peer.certificate) == forgery.plaintext)
    (forgery.compression, forgery.compressionLevel) = ("ZIP", 6)
    #expect(try Self.us.open(forgery.message(), from: Self.peer.certificate) == forgery.plaintext)
    forgery.recipients = [Self.stranger.certificate, Self.us.certificate]
    #expect(try Self.us.open(forgery.message(), from: Self.peer.certificate) == forgery.plaintext)
  }

  /// Each session key for our subkey would cost a decryption.
  @Test("Rejects a message that is encrypted to more keys than the limit")
  func rejectsAMessageForManyRecipients() throws {
    var forgery = Forgery(signers: [Self.peer], recipients: [Self.us.certificate])
    for number in 1..<OpenPGPKey.recipientLimit {
      try forgery.recipients.append(OpenPGPKey.generate(userID: "recipient \(number)").certificate)
    }
    #expect(try Self.us.open(forgery.message(), from: Self.peer.certificate) == forgery.plaintext)
    forgery.recipients.append(Self.stranger.certificate)
    #expect(throws: OpenPGPError.malformed("too many session keys")) {
      try Self.us.open(forgery.message(), from: Self.peer.certificate)
    }
  }

  @Test("Rejects a message without integrity protection") func rejectsAMessageWithoutIntegrityProtection() throws {
    let sealed = try Self.peer.seal([1], to: Self.us.certificate)
    let encrypted = 2 + Int(sealed[1])
    #expect(sealed[encrypted] == 0xc0 | 18)
    var relabeled = sealed
    relabeled[encrypted] = 0xc0 | 9
    #expect(throws: OpenPGPError.notIntact) { try Self.us.open(relabeled, from: Self.peer.certificate) }
  }

  @Test(
    "Rejects bytes that are not a message",
    arguments: [
      ([], .malformed("empty message")),
      ([0x41, 0x42], .malformed("no binary packet header")),
      (Array("-----BEGIN PGP MESSAGE-----".utf8), .malformed("no binary packet header")),
      ([0xd2, 0], .malformed("empty packet")),
      ([0xd2, 5, 1], .malformed("truncated")),
      ([0xd2, 0xff, 0xff, 0xff, 0xff, 0xff, 1], .malformed("truncated")),
      ([0xd2, 0xfe, 1], .malformed("truncated")),
      ([0xcb, 0xe0, 0x62, 1, 0x62], .malformed("partial length")),
      ([0x8f, 1, 2], .malformed("indeterminate length")),
      (Array(repeating: [0xc1, 1, 3], count: 65).flatMap(\.self), .malformed("more than 64 packets")),
      ([0xcb, 3, 0x62, 0, 0x41], .notForUs),
      ([0xd2, 2, 1, 0], .notForUs),
      ([0xc1, 1, 3, 0xd2, 2, 2, 9], .unsupported("SEIPD version 2")),
      ([0xca, 3, 0x50, 0x47, 0x50, 0xd2, 2, 1, 0], .unsupported("packet 10 in a message")),
      ([0xc1, 1, 3, 0xd2, 2, 1, 0], .notForUs),
    ] as [([UInt8], OpenPGPError)])
  func rejectsBytesThatAreNotAMessage(_ bytes: [UInt8], _ error: OpenPGPError) {
    #expect(throws: error) { try Self.us.open(bytes, from: Self.peer.certificate) }
  }
}
