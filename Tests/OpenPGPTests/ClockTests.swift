// SPDX-License-Identifier: Apache-2.0
import Foundation
import OpenPGP
import Testing

/// A board without a battery-backed clock starts in 1970 until the time is set. The token server has the correct time.
@Suite(.timeLimit(.minutes(5))) struct ClockTests {
  private static let atBoot: Int64 = 5
  private static let today: Int64 = 1_800_000_000
  private static let later: Int64 = 1_900_000_000

  @Test(
    "Messages pass for every time of the board's clock", arguments: [atBoot, today, later], [atBoot, today, later])
  func messagesPassForEveryTimeOfTheBoardsClock(boardKeyMade: Int64, boardClock: Int64) throws {
    let server = try OpenPGPKey.generate(userID: "server", at: Self.today)
    let board = try OpenPGPKey.generate(userID: "board", at: boardKeyMade)
    let serversCertificate = try OpenPGPCertificate(parsing: server.certificate.bytes, at: boardClock)
    let boardsCertificate = try OpenPGPCertificate(parsing: board.certificate.bytes, at: Self.today)

    let request = try server.seal([1], to: boardsCertificate, at: Self.today)
    #expect(try board.open(request, from: serversCertificate, at: boardClock) == [1])
    let answer = try board.seal([2], to: serversCertificate, at: boardClock)
    #expect(try server.open(answer, from: boardsCertificate, at: Self.today) == [2])
  }

  @Test("A clock that jumps does not disturb a key in use") func aClockThatJumpsDoesNotDisturbAKeyInUse() throws {
    let server = try OpenPGPKey.generate(userID: "server", at: Self.today)
    let board = try OpenPGPKey.generate(userID: "board", at: Self.atBoot)
    for clock in [Self.atBoot, Self.later, Self.today, 0, -1, .max, Self.atBoot] {
      let request = try server.seal([1], to: board.certificate, at: Self.today)
      #expect(try board.open(request, from: server.certificate, at: clock) == [1], "\(clock)")
      let answer = try board.seal([2], to: server.certificate, at: clock)
      #expect(try server.open(answer, from: board.certificate, at: Self.today) == [2], "\(clock)")
    }
  }

  @Test("A signature is valid until it expires, by the recipient's clock")
  func aSignatureIsValidUntilItExpiresByTheRecipientsClock() throws {
    let one = try OpenPGPKey.generate(userID: "one", at: Self.today)
    let other = try OpenPGPKey.generate(userID: "other", at: Self.today)
    let message = try Forgery(
      signers: [one], recipients: [other.certificate], creation: UInt32(Self.today), lifetime: 60
    ).message()
    for clock in [Self.atBoot, Self.today, Self.today + 60] {
      #expect(throws: Never.self) { try other.open(message, from: one.certificate, at: clock) }
    }
    #expect(throws: OpenPGPError.badSignature) {
      try other.open(message, from: one.certificate, at: Self.today + 61)
    }
  }

  @Test("A certificate is valid until it expires") func aCertificateIsValidUntilItExpires() throws {
    let bytes = try CertificateForgery(creation: UInt32(Self.today), lifetime: 60).bytes()
    let certificate = try OpenPGPCertificate(parsing: bytes, at: Self.today + 59)
    let key = try OpenPGPKey.generate(userID: "one", at: Self.today)
    #expect(throws: Never.self) { try key.seal([1], to: certificate, at: Self.today + 59) }
    #expect(throws: OpenPGPError.certificateNotValid("expired")) {
      try key.seal([1], to: certificate, at: Self.today + 61)
    }
    #expect(throws: OpenPGPError.certificateNotValid("expired primary key")) {
      try OpenPGPCertificate(parsing: bytes, at: Self.today + 61)
    }
  }

  /// The keys do not expire, but the signature that binds the subkey does, in 2099.
  private static let withExpiringSignature =
    """
    xjMEXgvhABYJKwYBBAHaRw8BAQdAZ998yAbfEZMZQoWx+MYzaupM2nUgeKRmWK1Ym4w+Uw7NBmRldmljZcJ4BBMWCgAgBQJeC+EAAhsDFiEEpu\
    Q8V24wTMcDJ8ZdsKZQQTCfQiAACgkQsKZQQTCfQiD+mQD/UYmr4dNn+h14Ce1Z3jAJyEO94Z3dhIL637IXhCGQolkBAJ6HySEaYMhtd1SSDh+z\
    FKFnmEyIUquEdfFurQ7wooMOzjgEXgvhABIKKwYBBAGXVQEFAQEHQI1BUA/ctsK8pQAXpFi/PHm+nZPez82YBzxkbIK1/qtbAwEKCcJ+BBgWCg\
    AmBQJeC+EAAhsMFiEEpuQ8V24wTMcDJ8ZdsKZQQTCfQiAFA5UC+QAACgkQsKZQQTCfQiAi5QD+J3vmTZKBNuqXhvnrw9KQk1C35qLIQW2+WuiZ\
    6Y6FVJsA/3MYUzOiwi7khQ1tBu/m7DOmhpa4iXHQKfI4BFn1MH4F
    """

  @Test("A lasting certificate has no expiry of its keys or of their signatures")
  func aLastingCertificateHasNoExpiryOfItsKeysOrOfTheirSignatures() throws {
    let lasting = try OpenPGPKey.generate(userID: "one").certificate
    #expect(try OpenPGPCertificate(parsingLasting: lasting.bytes) == lasting)
    let years: UInt32 = 2_000_000_000
    let bytes = try CertificateForgery(creation: UInt32(Self.today), lifetime: years).bytes()
    #expect(throws: Never.self) { try OpenPGPCertificate(parsing: bytes, at: Self.later) }
    #expect(throws: OpenPGPError.certificateNotValid("expired primary key")) {
      try OpenPGPCertificate(parsingLasting: bytes)
    }
    let signed = Array(try #require(Data(base64Encoded: Self.withExpiringSignature)))
    #expect(throws: Never.self) { try OpenPGPCertificate(parsing: signed, at: Self.later) }
    #expect(throws: OpenPGPError.certificateNotValid("subkey without valid self-signature")) {
      try OpenPGPCertificate(parsingLasting: signed)
    }
  }
}
