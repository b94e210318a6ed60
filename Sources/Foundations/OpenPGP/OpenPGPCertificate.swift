// SPDX-License-Identifier: Apache-2.0
import CRNP

/// A transferable public key of the profile `v4-25519`: Ed25519 primary that signs, Curve25519 subkey that encrypts.
package struct OpenPGPCertificate: Sendable, Equatable {
  /// The maximum size of a certificate in bytes. A certificate of the profile has about 400, more with many user IDs.
  package static let sizeLimit = 16_384

  /// Binary transferable public key (RFC 9580 §10.1), as received or generated.
  package let bytes: [UInt8]
  /// Upper-case hex of the primary key's fingerprint: 40 digits for v4.
  package let fingerprint: String
  /// The creation time of its newest part, in seconds since 1970. A clock with an earlier time is wrong.
  let newestPart: UInt32
  /// The expiry in seconds since 1970; `UInt32.max` if it does not expire.
  let validUntil: UInt32

  /// Accepts exactly one certificate of the profile with valid self-signatures that is neither expired nor revoked.
  ///
  /// - Parameter time: seconds since 1970; `nil` for the system's clock. If the time is before the creation of the
  ///   certificate, the clock is wrong, and the certificate is validated for its creation time.
  /// - Throws: `tooLarge`, `malformed`, `unsupported` (not of the profile) or `certificateNotValid`.
  package init(parsing bytes: [UInt8], at time: Int64? = nil) throws(OpenPGPError) {
    guard bytes.count <= Self.sizeLimit else { throw .tooLarge(limit: Self.sizeLimit) }
    let time = openPGPTime(time)
    self = try bytes.withUnsafeBufferPointer { (bytes) throws(OpenPGPError) in
      let bytes = UnsafeRawBufferPointer(bytes)
      let packets = try Packet.sequence(in: bytes)
      try requireLayout(of: packets, primary: Packet.Tag.publicKey, subkey: Packet.Tag.publicSubkey)
      let inspection = try CertificateInspection(of: bytes, at: time)
      guard inspection.newestPart > time else { return try inspection.certificate(bytes) }
      return try CertificateInspection(of: bytes, at: inspection.newestPart).certificate(bytes)
    }
  }

  /// Accepts a certificate, as `init(parsing:at:)` does, only if it never expires: neither its keys nor the
  /// self-signatures that they need.
  /// - Throws: as `init(parsing:at:)`; `certificateNotValid` also for one that expires.
  package init(parsingLasting bytes: [UInt8]) throws(OpenPGPError) {
    // Valid at the end of the time that OpenPGP can express.
    try self.init(parsing: bytes, at: Int64.max)
  }

  init(bytes: [UInt8], fingerprint: String, newestPart: UInt32, validUntil: UInt32) {
    self.bytes = bytes
    self.fingerprint = fingerprint
    self.newestPart = newestPart
    self.validUntil = validUntil
  }

  func requireValid(at time: UInt32) throws(OpenPGPError) {
    guard time <= validUntil else { throw .certificateNotValid("expired") }
  }
}

/// Requires one primary key, its user IDs, one subkey, and signatures on them, and no other packet.
func requireLayout(of packets: [Packet], primary: UInt8, subkey: UInt8) throws(OpenPGPError) {
  guard packets.first?.tag == primary else { throw .unsupported("first packet of a key: \(packets.first?.tag ?? 0)") }
  guard packets.allSatisfy({ $0.tag == Packet.Tag.signature || $0.tag == Packet.Tag.userID || $0.version == 4 }) else {
    throw .unsupported("key version other than 4")
  }
  let allowed = [primary, subkey, Packet.Tag.signature, Packet.Tag.userID]
  if let alien = packets.first(where: { !allowed.contains($0.tag) }) {
    throw .unsupported("packet \(alien.tag) in a key")
  }
  for (tag, name) in [(primary, "primary keys"), (subkey, "subkeys")] {
    let count = packets.count { $0.tag == tag }
    guard count == 1 else { throw .unsupported("\(count) \(name)") }
  }
}
