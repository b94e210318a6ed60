// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

/// What can be verified only with the former pepper.
package struct FormerPepperUse: Sendable {
  /// Client ids of portals that have not authenticated since the rotation.
  package let portals: [String]
  /// Names of fleet tokens with which no device has registered since.
  package let fleetTokens: [String]
  /// The number of activation codes that are valid and whose enrollment is not complete.
  package let activationCodes: Int
  /// When the last of these codes expires.
  package let lastExpiry: Timestamp?

  package var isEmpty: Bool { portals.isEmpty && fleetTokens.isEmpty && activationCodes == 0 }
}

/// The rotation of the pepper. It leaves hashes as they are, because they cannot be computed without the secrets: each
/// is replaced at the next use of its secret.
extension Database {
  /// The name of the key of MQTT topics among the server's keys. It is there after the first rotation.
  package static var topicKeyName: String { "mqtt-topics" }

  /// Replaces the sealed keys, deletes the access tokens, of which devices get new ones by themselves, and notes that
  /// all other hashes need the former pepper.
  /// - Parameters:
  ///   - topicKey: the key of MQTT topics, sealed for the new pepper, if it is not among the keys.
  ///   - reseal: seals the secret of a key for the new pepper; nil if it cannot be opened: it stays as it is.
  /// - Returns: the number of keys, and the fingerprints of those that could not be opened.
  package func rotatePepper(
    topicKey: [UInt8], reseal: (_ fingerprint: String, _ sealedSecret: [UInt8]) throws -> [UInt8]?
  ) throws -> (keys: Int, unreadable: [String]) {
    let keys = try sealedServerKeys(atMost: .max)
    var unreadable: [String] = []
    for (fingerprint, sealedSecret) in keys {
      guard let new = try reseal(fingerprint, sealedSecret) else {
        unreadable.append(fingerprint)
        continue
      }
      try replaceServerKey(fingerprint, sealedSecret: new)
    }
    if try sealedServerKey(Self.topicKeyName) == nil {
      try insertServerKey(Self.topicKeyName, sealedSecret: topicKey, isShared: false)
    }
    try run("DELETE FROM access_token")
    // Portals without a hash have no secret: see `invalidateFormerPepper`.
    try run("UPDATE api_client SET needs_former_pepper = 1 WHERE secret_hash <> ?", [[UInt8]()])
    for table in ["activation_code", "fleet_token"] { try run("UPDATE \(table) SET needs_former_pepper = 1") }
    return (keys.count, unreadable)
  }

  // MARK: Use of secrets from before the rotation

  /// Replaces the hash of a portal's secret, unless the secret has been replaced meanwhile.
  package func adoptPortalSecret(of id: String, former: [UInt8], current: [UInt8]) throws {
    try run(
      "UPDATE api_client SET secret_hash = ?, needs_former_pepper = 0 WHERE id = ? AND secret_hash = ?",
      [current, id, former])
  }

  /// Replaces the hash of an activation code everywhere, if it was made with the former pepper.
  /// - Parameter hashes: those of one code, the current one first.
  /// - Returns: the current one.
  package func adoptActivationCode(_ hashes: [[UInt8]]) throws -> [UInt8] {
    try adopt(hashes, in: "activation_code") { former, current in
      try run("UPDATE device SET credential = ? WHERE credential = ?", [current, former])
      try run(
        """
        UPDATE profile SET activation = ? WHERE activation = ? AND (client_id, id) IN (
          SELECT client_id, profile_id FROM activation_code WHERE hash = ?)
        """, [current, former, current])
    }
  }

  /// Replaces the hash of a fleet token everywhere, if it was made with the former pepper.
  /// - Parameter hashes: those of one token, the current one first.
  /// - Returns: the current one.
  package func adoptFleetToken(_ hashes: [[UInt8]]) throws -> [UInt8] {
    try adopt(hashes, in: "fleet_token") { former, current in
      try run("UPDATE device SET credential = ? WHERE credential = ?", [current, former])
    }
  }

  private func adopt(
    _ hashes: [[UInt8]], in table: String, references: (_ former: [UInt8], _ current: [UInt8]) throws -> Void
  ) throws -> [UInt8] {
    let current = hashes[0]
    for former in hashes.dropFirst()
    where try run("UPDATE \(table) SET hash = ?, needs_former_pepper = 0 WHERE hash = ?", [current, former]) > 0 {
      try references(former, current)
    }
    return current
  }

  // MARK: The end of the former pepper

  package func useOfFormerPepper(now: Timestamp) throws -> FormerPepperUse {
    func names(_ query: String) throws -> [String] { try rows(query).compactMap { try? $0.text("name") } }
    // A code stays valid after its use only for an enrollment that was interrupted.
    let codes = try row(
      """
      SELECT COUNT(*) AS count, MAX(expires_at_ms) AS last
      FROM activation_code LEFT JOIN profile
        ON profile.client_id = activation_code.client_id AND profile.id = activation_code.profile_id
      WHERE needs_former_pepper = 1 AND expires_at_ms > ? AND (activation_code.profile_id IS NULL
        OR (profile.push_token IS NULL AND profile.deleted_at_ms IS NULL))
      """, [now])
    return FormerPepperUse(
      portals: try names("SELECT id AS name FROM api_client WHERE needs_former_pepper = 1 ORDER BY id"),
      fleetTokens: try names("SELECT name FROM fleet_token WHERE needs_former_pepper = 1 ORDER BY name"),
      activationCodes: try codes.map { try $0.count("count") } ?? 0,
      lastExpiry: try codes.flatMap { try $0.optionalTime("last") })
  }

  /// Removes what can be verified only with the former pepper, so that running servers refuse it, too. A portal keeps
  /// its row without a secret, and can get a new one.
  package func invalidateFormerPepper() throws {
    try run(
      "UPDATE api_client SET secret_hash = ?, needs_former_pepper = 0 WHERE needs_former_pepper = 1", [[UInt8]()])
    for table in ["activation_code", "fleet_token"] {
      try run("DELETE FROM \(table) WHERE needs_former_pepper = 1")
    }
  }
}
