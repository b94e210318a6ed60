import CRNP
public import Secrets

/// A key pair of the profile `v4-25519`, ready to seal and open messages. Safe to use from many threads at once.
public final class OpenPGPKey: Sendable {
  public let certificate: OpenPGPCertificate
  /// Binary transferable secret key (RFC 9580 §10.2), not protected by a password: whoever stores it seals it.
  public let secret: SecretBytes
  private let keyrings = KeyringCache()

  /// Makes a new key that never expires.
  ///
  /// - Parameters:
  ///   - userID: 1 to 127 bytes. Travels with every copy of the certificate.
  ///   - time: seconds since 1970, `nil` for the system's clock. Becomes the key's creation time, before which no
  ///     peer believes a signature of it; a clock that is behind harms nobody.
  /// - Throws: `unsupported` for a user ID of a wrong length.
  public static func generate(userID: String, at time: Int64? = nil) throws(OpenPGPError) -> OpenPGPKey {
    guard (1...127).contains(userID.utf8.count), !userID.utf8.contains(0) else {
      throw .unsupported("user ID of \(userID.utf8.count) bytes")
    }
    let keyring = try Keyring(at: openPGPTime(time))
    // Handles point into their keyring.
    defer { extendLifetime(keyring) }
    let primary = try keyring.generateKeys(userID: userID)
    return try OpenPGPKey(secret: export(primary, parts: RNP_KEY_EXPORT_SECRET).secretBytes())
  }

  /// Takes back what `secret` gave.
  public init(secret: SecretBytes) throws(OpenPGPError) {
    guard secret.count <= OpenPGPCertificate.sizeLimit else { throw .tooLarge(limit: OpenPGPCertificate.sizeLimit) }
    let keyring = try Keyring(at: openPGPTime(nil))
    defer { extendLifetime(keyring) }
    try secret.withExposedSecret { (bytes) throws(OpenPGPError) in
      let packets = try Packet.sequence(in: bytes)
      try requireLayout(of: packets, primary: Packet.Tag.secretKey, subkey: Packet.Tag.secretSubkey)
      try keyring.load(bytes, [.publicParts, .secretParts])
    }
    let primary = try keyring.onlyPrimaryKey()
    guard !(try value("rnp_key_is_protected", initially: true) { rnp_key_is_protected(primary.pointer, &$0) }) else {
      throw .unsupported("secret key under a password")
    }
    certificate = try OpenPGPCertificate(parsing: export(primary, parts: RNP_KEY_EXPORT_PUBLIC).bytes())
    self.secret = secret
  }

  /// Runs `body` with a keyring that holds this key's secret parts and `peer`, and nothing else. `now` is what the
  /// clock shows, but no earlier than this key: that much a clock without a battery can know.
  func withKeyring<Result>(
    for peer: OpenPGPCertificate, at time: Int64?, _ body: (Keyring, _ now: UInt32) throws(OpenPGPError) -> Result
  ) throws(OpenPGPError) -> Result {
    let now = max(openPGPTime(time), certificate.newestPart)
    try peer.requireValid(at: now)
    // librnp believes in no key and no signature from its future.
    let believed = max(now, peer.newestPart)
    return try keyrings.withKeyring(for: peer) { () throws(OpenPGPError) in
      let keyring = try Keyring(at: believed)
      try secret.withExposedSecret { (bytes) throws(OpenPGPError) in try keyring.load(bytes, .secretParts) }
      try keyring.load(peer)
      return keyring
    } _: { (keyring) throws(OpenPGPError) in
      try keyring.setTime(believed)
      return try body(keyring, now)
    }
  }
}

private func export(_ primary: borrowing Handle, parts: UInt32) throws(OpenPGPError) -> MemoryOutput {
  let output = try MemoryOutput()
  try check(
    rnp_key_export(primary.pointer, output.pointer, parts | RNP_KEY_EXPORT_SUBKEYS), "rnp_key_export")
  return output
}
