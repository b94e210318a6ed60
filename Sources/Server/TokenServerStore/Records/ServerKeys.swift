// SPDX-License-Identifier: Apache-2.0
import TokenServerCore

/// The server's OpenPGP keys, encrypted.
extension Database {
  /// - Returns: the fingerprint of the key for all enrollments; nil if there is none.
  package func sharedServerKey() throws -> String? {
    try row("SELECT fingerprint FROM server_key WHERE is_shared = 1").map { try $0.text("fingerprint") }
  }

  package func insertServerKey(_ fingerprint: String, sealedSecret: [UInt8], isShared: Bool) throws {
    try run(
      "INSERT INTO server_key (fingerprint, sealed_secret, is_shared) VALUES (?, ?, ?)",
      [fingerprint, sealedSecret, isShared])
  }

  /// The keys with their fingerprints, the shared one first. Unreadable rows are left out.
  package func sealedServerKeys(atMost limit: Int) throws -> [(fingerprint: String, sealedSecret: [UInt8])] {
    try rows("SELECT fingerprint, sealed_secret FROM server_key ORDER BY is_shared DESC LIMIT ?", [limit])
      .compactMap { row in
        guard let fingerprint = try? row.text("fingerprint"), let box = try? row.bytes("sealed_secret") else {
          return nil
        }
        return (fingerprint, box)
      }
  }

  package func replaceServerKey(_ fingerprint: String, sealedSecret: [UInt8]) throws {
    try run("UPDATE server_key SET sealed_secret = ? WHERE fingerprint = ?", [sealedSecret, fingerprint])
  }

  package func serverKey(_ fingerprint: String) throws -> (sealedSecret: [UInt8], isShared: Bool)? {
    try row("SELECT sealed_secret, is_shared FROM server_key WHERE fingerprint = ?", [fingerprint])
      .map { (try $0.bytes("sealed_secret"), try $0.flag("is_shared")) }
  }

  package func sealedServerKey(_ fingerprint: String) throws -> [UInt8]? {
    try row("SELECT sealed_secret FROM server_key WHERE fingerprint = ?", [fingerprint])
      .map { try $0.bytes("sealed_secret") }
  }

  /// Runs a change of a profile, and deletes the server keys that it names no longer, so that a device cannot add keys
  /// without end. A message sealed for such a key is refused anyway, because the profile has another key or none. Keys
  /// that another profile names stay, and those of no profile, such as the shared one and that of MQTT topics.
  @discardableResult
  func forgettingServerKeys<Value>(of profile: ProfileName, _ change: () throws -> Value) throws -> Value {
    let former = try row(
      "SELECT server_key, former_server_key FROM profile WHERE client_id = ? AND id = ?",
      [profile.clientID, profile.id])
    let result = try change()
    for column in ["server_key", "former_server_key"] {
      guard case .text(let fingerprint)? = former?.value(of: column) else { continue }
      try run(
        """
        DELETE FROM server_key WHERE fingerprint = ? AND is_shared = 0
          AND NOT EXISTS (SELECT 1 FROM profile WHERE profile.server_key = server_key.fingerprint)
          AND NOT EXISTS (SELECT 1 FROM profile WHERE profile.former_server_key = server_key.fingerprint)
        """, [fingerprint])
    }
    return result
  }
}
