// SPDX-License-Identifier: Apache-2.0
import CRNP
package import Secrets

/// A key pair of the profile `v4-25519` that seals and opens messages. Thread-safe.
package final class OpenPGPKey: Sendable {
  package let certificate: OpenPGPCertificate
  /// Binary transferable secret key (RFC 9580 §10.2). Not protected by a password: storage must encrypt it.
  package let secret: SecretBytes
  private let keyrings: KeyringCache

  /// Generates a key that does not expire.
  ///
  /// - Parameters:
  ///   - userID: 1 to 127 bytes. Part of every copy of the certificate.
  ///   - time: seconds since 1970, `nil` for the system's clock. Becomes the key's creation time; peers reject
  ///     signatures dated before it. A clock that is behind is therefore harmless.
  ///   - peers: as for `init(secret:peers:)`.
  /// - Throws: `unsupported` for a user ID of a wrong length.
  package static func generate(
    userID: String, at time: Int64? = nil, peers: Int = 4
  ) throws(OpenPGPError) -> OpenPGPKey {
    guard (1...127).contains(userID.utf8.count), !userID.utf8.contains(0) else {
      throw .unsupported("user ID of \(userID.utf8.count) bytes")
    }
    let keyring = try Keyring(at: openPGPTime(time))
    // Handles point into their keyring, so the keyring must outlive them.
    defer { extendLifetime(keyring) }
    let primary = try keyring.generateKeys(userID: userID)
    return try OpenPGPKey(secret: export(primary, parts: RNP_KEY_EXPORT_SECRET).secretBytes(), peers: peers)
  }

  /// Restores a key from its `secret`.
  /// - Parameter peers: for how many peers it stays loaded, at least 1, which takes about 60 KB for each that is used.
  ///   The first message to or from another one takes twice as long.
  package init(secret: SecretBytes, peers: Int = 4) throws(OpenPGPError) {
    keyrings = KeyringCache(limit: peers)
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
      throw .unsupported("password-protected secret key")
    }
    certificate = try OpenPGPCertificate(parsing: export(primary, parts: RNP_KEY_EXPORT_PUBLIC).bytes())
    self.secret = secret
  }

  /// Runs `body` with a keyring that holds only this key's secret parts and `peer`. `now` is the time of the clock, but
  /// not before the creation of this key: the lower bound that is known without a battery-backed clock.
  func withKeyring<Result>(
    for peer: OpenPGPCertificate, at time: Int64?, _ body: (Keyring, _ now: UInt32) throws(OpenPGPError) -> Result
  ) throws(OpenPGPError) -> Result {
    let now = max(openPGPTime(time), certificate.newestPart)
    try peer.requireValid(at: now)
    // librnp rejects keys and signatures that are dated after its present time.
    let believed = max(now, peer.newestPart)
    return try keyrings.withKeyring(for: peer, at: believed) { () throws(OpenPGPError) in
      let keyring = try Keyring(at: believed)
      try secret.withExposedSecret { (bytes) throws(OpenPGPError) in try keyring.load(bytes, .secretParts) }
      return keyring
    } _: { (keyring) throws(OpenPGPError) in
      try body(keyring, now)
    }
  }
}

private func export(_ primary: borrowing Handle, parts: UInt32) throws(OpenPGPError) -> MemoryOutput {
  let output = try MemoryOutput()
  try check(
    rnp_key_export(primary.pointer, output.pointer, parts | RNP_KEY_EXPORT_SUBKEYS), "rnp_key_export")
  return output
}
