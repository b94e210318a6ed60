// SPDX-License-Identifier: Apache-2.0
import CRNP
import Secrets
import Testing

@testable import OpenPGP

@Suite(.timeLimit(.minutes(5))) struct CertificateTests {
  private static let key = try! OpenPGPKey.generate(userID: "board")

  @Test("A generated certificate is of the profile") func aGeneratedCertificateIsOfTheProfile() throws {
    let bytes = Self.key.certificate.bytes
    let packets = try bytes.withUnsafeBytes { try Packet.sequence(in: $0) }
    #expect(packets.map(\.tag) == [6, 13, 2, 14, 2])
    // RFC 9580 §5.5.2: version, four octets of time, algorithm, then the curve's OID with its length (§9.2).
    #expect(bytes[7...].starts(with: [22, 9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1]))
    let subkey = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xce, 56, 4]) })
    #expect(bytes[(subkey + 7)...].starts(with: [18, 10, 0x2b, 6, 1, 4, 1, 0x97, 0x55, 1, 5, 1]))
    #expect(Self.key.certificate.fingerprint.count == 40)
    #expect(Self.key.certificate.fingerprint.allSatisfy { "0123456789ABCDEF".contains($0) })
    #expect(Self.key.certificate.validUntil == .max)
  }

  @Test("A certificate survives serialization") func aCertificateSurvivesSerialization() throws {
    #expect(try OpenPGPCertificate(parsing: Self.key.certificate.bytes) == Self.key.certificate)
  }

  @Test("User IDs have a limited length", arguments: ["", String(repeating: "x", count: 128), "a\0b"])
  func userIDsHaveALimitedLength(userID: String) {
    #expect(throws: OpenPGPError.unsupported("user ID of \(userID.utf8.count) bytes")) {
      try OpenPGPKey.generate(userID: userID)
    }
  }

  struct Case: CustomTestStringConvertible {
    let testDescription: String
    let forgery: CertificateForgery
    let error: OpenPGPError

    init(_ description: String, _ error: OpenPGPError, _ change: (inout CertificateForgery) -> Void) {
      var forgery = CertificateForgery()
      change(&forgery)
      (testDescription, self.forgery, self.error) = (description, forgery, error)
    }
  }

  @Test(
    "Rejects a certificate with",
    arguments: [
      Case("RSA", .unsupported("RSA key, expected EDDSA")) { $0.primary.algorithm = "RSA" },
      Case("P-256", .unsupported("ECDSA key, expected EDDSA")) {
        ($0.primary.algorithm, $0.primary.curve) = ("ECDSA", "NIST P-256")
      },
      Case("no subkey", .unsupported("0 subkeys")) { $0.subkey = nil },
      Case("subkey that signs", .unsupported("EDDSA key, expected ECDH")) { $0.subkey = ("EDDSA", nil, "sign") },
      Case("subkey on P-256", .unsupported("NIST P-256 key, expected Curve25519")) {
        $0.subkey = ("ECDH", "NIST P-256", "encrypt")
      },
      Case("revoked", .certificateNotValid("revoked primary key")) { $0.isRevoked = true },
      Case("expired", .certificateNotValid("expired primary key")) { $0.lifetime = 60 },
    ])
  func rejectsACertificateWith(_ forged: Case) throws {
    let bytes = try forged.forgery.bytes()
    #expect(throws: forged.error) { try OpenPGPCertificate(parsing: bytes, at: 1_800_001_000) }
  }

  @Test("Rejects a secret key in place of a certificate") func rejectsASecretKeyInPlaceOfACertificate() throws {
    let secret = Self.key.secret.withExposedSecret { Array($0) }
    #expect(throws: OpenPGPError.unsupported("first packet of a key: 5")) { try OpenPGPCertificate(parsing: secret) }
    #expect(throws: OpenPGPError.unsupported("packet 5 in a key")) {
      try OpenPGPCertificate(parsing: Self.key.certificate.bytes + secret)
    }
  }

  @Test("Rejects a certificate in place of a secret key") func rejectsACertificateInPlaceOfASecretKey() {
    let bytes = SecretBytes(copying: Self.key.certificate.bytes)
    #expect(throws: OpenPGPError.unsupported("first packet of a key: 6")) { try OpenPGPKey(secret: bytes) }
  }

  @Test("Rejects two certificates, none, and too large ones") func rejectsTwoCertificatesNoneAndTooLargeOnes() throws {
    let bytes = Self.key.certificate.bytes
    let second = try OpenPGPKey.generate(userID: "second").certificate.bytes
    #expect(throws: OpenPGPError.unsupported("2 primary keys")) { try OpenPGPCertificate(parsing: bytes + second) }
    #expect(throws: OpenPGPError.unsupported("first packet of a key: 0")) { try OpenPGPCertificate(parsing: []) }
    #expect(throws: OpenPGPError.tooLarge(limit: 16_384)) {
      try OpenPGPCertificate(parsing: bytes + Array(repeating: 0, count: 16_384))
    }
  }

  /// The user ID, the keys and the signatures are all protected: a certificate with any changed bit is not accepted as
  /// a different certificate.
  @Test("No changed bit makes another certificate") func noChangedBitMakesAnotherCertificate() throws {
    let original = Self.key.certificate
    for position in original.bytes.indices {
      for bit in 0..<8 {
        var changed = original.bytes
        changed[position] ^= 1 << bit
        do {
          let parsed = try OpenPGPCertificate(parsing: changed)
          #expect(parsed.fingerprint == original.fingerprint, "bit \(bit) of byte \(position)")
        } catch .libraryFailure(let text) {
          Issue.record("bit \(bit) of byte \(position): blamed on the library: \(text)")
        } catch {}
      }
    }
    for length in original.bytes.indices {
      #expect(throws: OpenPGPError.self) { try OpenPGPCertificate(parsing: Array(original.bytes[..<length])) }
    }
  }
}
