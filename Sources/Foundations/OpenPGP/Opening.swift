// SPDX-License-Identifier: Apache-2.0
extension OpenPGPKey {
  /// The maximum number of bytes that encryption, signature and framing add to a plaintext.
  private static let overhead = 16_384
  /// The maximum number of public keys to which a message is encrypted. librnp may try each session key.
  package static let recipientLimit = 4

  /// Decrypts and verifies a message. Releases the plaintext only if the message is encrypted to this key with AES-256,
  /// intact (MDC), and has exactly one signature: binary, SHA-2, valid, and made by `signer`.
  ///
  /// Compressed content is accepted, because GnuPG compresses by default; `limit` applies to the uncompressed content.
  /// A signature dated after `time` is accepted, because a board without a battery cannot detect it. The plaintext must
  /// prove its freshness.
  ///
  /// - Parameters:
  ///   - limit: the maximum size of the plaintext in bytes.
  ///   - time: seconds since 1970, `nil` for the system's clock. Keys and signatures that have expired by then are
  ///     rejected.
  package func open(
    _ message: [UInt8], from signer: OpenPGPCertificate, limit: Int = 262_144, at time: Int64? = nil
  ) throws(OpenPGPError) -> [UInt8] {
    guard message.count - Self.overhead <= limit else { throw .tooLarge(limit: limit) }
    return try message.withUnsafeBufferPointer { (message) throws(OpenPGPError) in
      let message = UnsafeRawBufferPointer(message)
      try requireLayout(ofMessage: try Packet.sequence(in: message))
      return try withKeyring(for: signer, at: time) { (keyring, now) throws(OpenPGPError) in
        var verification = try Verification(of: message, in: keyring, limit: limit)
        if let dated = verification.signature?.creation, dated > now, verification.signature?.isValid == false {
          // librnp reports a signature dated after its present time as invalid or expired, depending on its version.
          // Verify again with the signature's time.
          try keyring.setTime(dated)
          verification = try Verification(of: message, in: keyring, limit: limit)
        }
        return try verification.plaintext(signedBy: signer, limit: limit)
      }
    }
  }
}

/// Requires few session keys for public keys, then one encrypted packet with integrity protection (SEIPD v1, RFC 9580
/// §5.13.1), and no packet after it.
private func requireLayout(ofMessage packets: [Packet]) throws(OpenPGPError) {
  guard let last = packets.last else { throw .malformed("empty message") }
  switch (last.tag, last.version) {
  case (Packet.Tag.encryptedWithIntegrity, 1):
    guard packets.count > 1 else { throw .notForUs }
    guard packets.count - 1 <= OpenPGPKey.recipientLimit else { throw .malformed("too many session keys") }
  case (Packet.Tag.encryptedWithIntegrity, let version): throw .unsupported("SEIPD version \(version)")
  case (Packet.Tag.encryptedWithoutIntegrity, _): throw .notIntact
  default: throw .notForUs
  }
  for packet in packets.dropLast() where packet.tag != Packet.Tag.encryptedSessionKey {
    throw .unsupported("packet \(packet.tag) in a message")
  }
}
