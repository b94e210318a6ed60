extension OpenPGPKey {
  /// What encryption, signature and framing may add to a plaintext, in bytes.
  private static let overhead = 16_384

  /// Decrypts and verifies. The plaintext is released only if the message is encrypted to this key with AES-256,
  /// intact (MDC), and carries exactly one signature: binary, SHA-2, valid, and by `signer`.
  ///
  /// Compressed content is accepted, because GnuPG compresses where it can, and held to `limit` like any other.
  /// A signature dated after `time` is accepted: a board without a battery cannot tell. Freshness is for the plaintext.
  ///
  /// - Parameters:
  ///   - limit: most bytes the plaintext may have.
  ///   - time: seconds since 1970, `nil` for the system's clock; what has expired by then is refused.
  public func open(
    _ message: [UInt8], from signer: OpenPGPCertificate, limit: Int = 262_144, at time: Int64? = nil
  ) throws(OpenPGPError) -> [UInt8] {
    guard message.count - Self.overhead <= limit else { throw .tooLarge(limit: limit) }
    return try message.withUnsafeBufferPointer { (message) throws(OpenPGPError) in
      let message = UnsafeRawBufferPointer(message)
      try requireLayout(ofMessage: try Packet.sequence(in: message))
      return try withKeyring(for: signer, at: time) { (keyring, now) throws(OpenPGPError) in
        var verification = try Verification(of: message, in: keyring, limit: limit)
        if let dated = verification.signature?.creation, dated > now, verification.signature?.isValid == false {
          // librnp calls a signature from its future invalid or expired, depending on its version. Ask as of then.
          try keyring.setTime(dated)
          verification = try Verification(of: message, in: keyring, limit: limit)
        }
        return try verification.plaintext(signedBy: signer, limit: limit)
      }
    }
  }
}

/// Session keys for public keys, then one encrypted packet with integrity protection (SEIPD v1, RFC 9580 §5.13.1), and
/// nothing after it.
private func requireLayout(ofMessage packets: [Packet]) throws(OpenPGPError) {
  guard let last = packets.last else { throw .malformed("empty message") }
  switch (last.tag, last.version) {
  case (Packet.Tag.encryptedWithIntegrity, 1): guard packets.count > 1 else { throw .notForUs }
  case (Packet.Tag.encryptedWithIntegrity, let version): throw .unsupported("SEIPD version \(version)")
  case (Packet.Tag.encryptedWithoutIntegrity, _): throw .notIntact
  default: throw .notForUs
  }
  for packet in packets.dropLast() where packet.tag != Packet.Tag.encryptedSessionKey {
    throw .unsupported("packet \(packet.tag) in a message")
  }
}
