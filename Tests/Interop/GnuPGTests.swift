// SPDX-License-Identifier: Apache-2.0
import OpenPGP
import Secrets
import Testing

/// Messages of this project processed by GnuPG, and the reverse.
@Suite(.timeLimit(.minutes(5))) struct GnuPGTests {
  private let gpg: GnuPG
  private let peer: String
  private let peersCertificate: OpenPGPCertificate
  private let us: OpenPGPKey
  private var ours: String { us.certificate.fingerprint }

  init() throws {
    gpg = try GnuPG()
    peer = try gpg.generateKey("peer")
    peersCertificate = try OpenPGPCertificate(parsing: gpg.export(peer))
    us = try OpenPGPKey.generate(userID: "us")
    try gpg.run("--import", reading: us.certificate.bytes)
  }

  private let plaintext = Array("approve transfer of 10".utf8)

  @Test("Fingerprints agree") func fingerprintsAgree() throws {
    #expect(peersCertificate.fingerprint == peer)
    #expect(try OpenPGPCertificate(parsing: gpg.export(ours)).fingerprint == ours)
  }

  @Test("GnuPG decrypts and verifies messages of this project", arguments: [1, 1000, 262_144])
  func gnuPGDecryptsAndVerifiesMessagesOfThisProject(size: Int) throws {
    let plaintext = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let opened = try gpg.run("--decrypt", reading: us.seal(plaintext, to: peersCertificate))
    #expect(opened.output == plaintext)
    #expect(opened.status.contains("DECRYPTION_OKAY"))
    // GnuPG's doc/DETAILS: MDC method 2 is SHA-1 as in SEIPD v1, cipher 9 is AES-256.
    #expect(try #require(opened.words(after: "DECRYPTION_INFO")).starts(with: ["2", "9"]))
    // Public-key algorithm 22 is EdDSA, hash 10 is SHA-512, class 00 is binary.
    let valid = try #require(opened.words(after: "VALIDSIG"))
    #expect(valid.first == ours)
    #expect(valid.dropFirst(6).prefix(3) == ["22", "10", "00"])
  }

  /// librnp 0.18.0 used a session key of zeros (CVE-2025-13470). The installed version must not.
  @Test("Every message has its own session key") func everyMessageHasItsOwnSessionKey() throws {
    var keys: Set<String> = []
    for _ in 0..<4 {
      let opened = try gpg.run("--show-session-key", "--decrypt", reading: us.seal(plaintext, to: peersCertificate))
      let key = try #require(opened.words(after: "SESSION_KEY")?.first)
      #expect(key.hasPrefix("9:") && key.count == 2 + 64)
      #expect(!key.hasSuffix(String(repeating: "0", count: 32)))
      keys.insert(key)
    }
    #expect(keys.count == 4)
  }

  /// A board that was started with an unset clock.
  @Test("GnuPG accepts keys and signatures of 1970") func gnuPGAcceptsKeysAndSignaturesOf1970() throws {
    let board = try OpenPGPKey.generate(userID: "board", at: 5)
    try gpg.run("--import", reading: board.certificate.bytes)
    let opened = try gpg.run("--decrypt", reading: board.seal(plaintext, to: peersCertificate, at: 9))
    #expect(opened.output == plaintext)
    #expect(opened.words(after: "VALIDSIG")?[2] == "9")
  }

  @Test(
    "Messages that GnuPG encrypts and signs are opened",
    arguments: [
      [], ["--compress-algo", "none"], ["--compress-algo", "zip"], ["--compress-algo", "zlib"],
      ["--compress-algo", "bzip2"], ["--digest-algo", "SHA256"], ["--set-filename", "x", "--sig-notation", "a@b.c=d"],
      ["--recipient", "peer"],
    ])
  func messagesThatGnuPGEncryptsAndSignsAreOpened(options: [String]) throws {
    for size in [1, 1000, 262_144] {
      let plaintext = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 5) }
      let message = try signAndEncrypt(plaintext, options)
      #expect(try us.open(message, from: peersCertificate) == plaintext)
    }
  }

  private func signAndEncrypt(_ plaintext: [UInt8], _ options: [String]) throws -> [UInt8] {
    let made = try gpg.attempt(
      ["--local-user", peer, "--recipient", ours] + options + ["--sign", "--encrypt"], reading: plaintext)
    guard made.exitCode == 0 else { throw GnuPG.GnuPGError(description: made.complaints) }
    return made.output
  }

  struct Refusal: CustomTestStringConvertible {
    let testDescription: String
    let error: OpenPGPError
    /// Options and commands; the existing keys are `us`, `peer` and `stranger`.
    let arguments: [String]

    init(_ description: String, _ error: OpenPGPError, _ arguments: String) {
      testDescription = description
      self.error = error
      self.arguments = arguments.split(separator: " ").map(String.init)
    }
  }

  @Test(
    "Invalid messages of GnuPG are refused",
    arguments: [
      Refusal("unsigned", .unsigned, "-r us -e"),
      Refusal("compressed, not encrypted", .malformed("indeterminate length"), "-u peer -s"),
      Refusal("signed only", .notForUs, "-u peer -z 0 -s"),
      Refusal("a signature only", .notForUs, "-u peer -b"),
      Refusal("clear text with a signature", .malformed("no binary packet header"), "-u peer --clearsign"),
      Refusal("armored", .malformed("no binary packet header"), "-u peer -r us --armor -se"),
      Refusal("encrypted to another", .notForUs, "-u peer -r stranger -se"),
      Refusal("encrypted to an unnamed recipient", .notForUs, "-u peer -R us -se"),
      Refusal("encrypted to a password", .unsupported("packet 3 in a message"), "-u peer --passphrase x -sc"),
      Refusal(
        "encrypted to us and a password", .unsupported("packet 3 in a message"), "-u peer -r us --passphrase x -sec"),
      Refusal("signed by two", .unsupported("2 signatures"), "-u peer -u stranger -r us -se"),
      Refusal("signed as text", .unsupported("signature of kind text"), "-u peer -r us --textmode -se"),
      Refusal("signed with SHA-1", .badSignature, "-u peer -r us --digest-algo SHA1 -se"),
      Refusal("encrypted with AES-128", .unsupported("cipher AES128"), "-u peer -r us --cipher-algo AES128 -se"),
      Refusal("with a notation we do not know but must", .badSignature, "-u peer -r us -N !a@b.c=d -se"),
    ])
  func invalidMessagesOfGnuPGAreRefused(_ refusal: Refusal) throws {
    _ = try gpg.generateKey("stranger")
    let made = try gpg.attempt(refusal.arguments, reading: plaintext)
    try #require(made.exitCode == 0, "\(made.complaints)")
    #expect(throws: refusal.error) { try us.open(made.output, from: peersCertificate) }
  }

  @Test("A message by the wrong signer is refused") func aMessageByTheWrongSignerIsRefused() throws {
    let stranger = try gpg.generateKey("stranger")
    let made = try gpg.run("--local-user", stranger, "--recipient", ours, "--sign", "--encrypt", reading: plaintext)
    #expect(throws: OpenPGPError.wrongSigner(fingerprint: stranger)) {
      try us.open(made.output, from: peersCertificate)
    }
    #expect(try us.open(made.output, from: OpenPGPCertificate(parsing: gpg.export(stranger))) == plaintext)
  }

  @Test("A message that is too large is refused, compressed or not", arguments: ["none", "zlib"])
  func aMessageThatIsTooLargeIsRefusedCompressedOrNot(compression: String) throws {
    let message = try signAndEncrypt(Array(repeating: 0, count: 262_145), ["--compress-algo", compression])
    #expect(throws: OpenPGPError.tooLarge(limit: 262_144)) { try us.open(message, from: peersCertificate) }
  }

  @Test("A signature with a future date is valid until its expiration")
  func aSignatureWithAFutureDateIsValidUntilItsExpiration() throws {
    let message = try signAndEncrypt(
      plaintext, ["--default-sig-expire", "seconds=100", "--faked-system-time", "20380101T000000!"])
    let made: Int64 = 2_145_916_800
    #expect(try us.open(message, from: peersCertificate) == plaintext)
    #expect(try us.open(message, from: peersCertificate, at: made + 100) == plaintext)
    #expect(throws: OpenPGPError.badSignature) { try us.open(message, from: peersCertificate, at: made + 101) }
  }

  @Test("A changed or truncated message is refused") func aChangedOrTruncatedMessageIsRefused() throws {
    let message = try signAndEncrypt(plaintext, [])
    // After the session key's packet, which has the old format with a one-octet length.
    let encrypted = 2 + Int(message[1])
    for position in encrypted..<message.count {
      var changed = message
      changed[position] ^= UInt8(1 << (position % 8))
      #expect(throws: OpenPGPError.self, "byte \(position)") { try us.open(changed, from: peersCertificate) }
    }
    for length in message.indices {
      #expect(throws: OpenPGPError.self, "first \(length)") {
        try us.open(Array(message[..<length]), from: peersCertificate)
      }
    }
  }
}
