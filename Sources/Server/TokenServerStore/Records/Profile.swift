// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
package import TokenServerCore

extension Profile {
  /// The query that `init` reads; a condition follows.
  static func query(_ dialect: SQLDialect) -> String {
    switch dialect {
    case .sqlite: sqliteQuery
    case .postgreSQL: postgreSQLQuery
    }
  }

  private static let sqliteQuery = written(for: .sqlite)
  private static let postgreSQLQuery = written(for: .postgreSQL)

  private static func written(for dialect: SQLDialect) -> String {
    """
    SELECT profile.*, public_key AS knowledge_key, state AS knowledge_state, nonce AS knowledge_nonce,
      knowledge.activation AS knowledge_activation, failures AS knowledge_failures,
      proposed_at_ms AS knowledge_proposed_at_ms,
      (SELECT \(dialect.list(of: "authenticator.kind || ':' || authenticator.id")) FROM authenticator
        WHERE authenticator.client_id = profile.client_id AND authenticator.profile_id = profile.id
          AND authenticator.state = 'active' AND \(dialect.isText("authenticator.kind"))
          AND \(dialect.isText("authenticator.id"))) AS authenticators,
      (SELECT device.capabilities FROM device WHERE device.id = profile.client_id) AS device_capabilities
    FROM profile LEFT JOIN knowledge ON knowledge.client_id = profile.client_id AND profile_id = profile.id
    """
  }

  init(_ row: any SQLRow) throws {
    try self.init(
      clientID: row.clientID("client_id"),
      id: row.profileID("id"),
      userID: row.userID("user_id"),
      activation: row.bytes("activation"),
      createdAt: row.time("created_at_ms"),
      certificate: row.optionalBytes("certificate"),
      certificateFingerprint: row.optionalText("certificate_fingerprint"),
      serverKey: row.optionalText("server_key"),
      keyID: row.optionalText("key_id"),
      isAcknowledged: row.flag("acknowledged"),
      pushToken: row.optionalText("push_token"),
      isDisenrolled: row.flag("disenrolled"),
      isDeleted: row.optionalTime("deleted_at_ms") != nil,
      formerCertificate: row.optionalBytes("former_certificate"),
      formerServerKey: row.optionalText("former_server_key"),
      knowledge: PINVerifierRecord(row), authenticators: Self.authenticators(row.text("authenticators")),
      // Damaged capabilities are a fault of the device's row, not of the profile's.
      announcedCapabilities: try? row.optionalText("device_capabilities"))
  }

  /// - Parameter text: a JSON list of `KIND:IDENTIFIER`.
  private static func authenticators(_ text: String) throws -> [RegisteredAuthenticator] {
    // Most profiles have none.
    guard text != "[]" else { return [] }
    return try JSON.decode([String].self, from: Array(text.utf8)).sorted().compactMap { entry in
      let parts = entry.split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2, let kind = ServerConfiguration.Authenticator.Kind(rawValue: parts[0]) else { return nil }
      return RegisteredAuthenticator(id: parts[1], kind: kind)
    }
  }
}

extension ProfileName {
  init(_ row: any SQLRow) throws(CorruptRowError) {
    self.init(clientID: try row.clientID("client_id"), id: try row.profileID("id"))
  }
}

extension Database {
  /// Finds deleted profiles too.
  package func profile(_ id: ProfileID, on clientID: ClientID) throws -> Profile? {
    try row(Profile.query(dialect) + " WHERE profile.client_id = ? AND profile.id = ?", [clientID, id]).map(
      Profile.init)
  }

  /// Whether the profile has been neither deleted nor created again since it was read.
  package func isCurrent(_ profile: Profile) throws -> Bool {
    let current = try self.profile(profile.id, on: profile.clientID)
    return current?.isDeleted == false && current?.activation == profile.activation
  }

  /// Returns the readable profiles of a device that are not deleted.
  package func profiles(on clientID: ClientID) throws -> [Profile] {
    try rows(Profile.query(dialect) + " WHERE profile.client_id = ? AND deleted_at_ms IS NULL", [clientID])
      .compactMap { try? Profile($0) }
  }

  /// Returns the identifiers of all profiles of a device, including unreadable profiles, so that they can be deleted.
  package func profileNames(on clientID: ClientID) throws -> [ProfileName] {
    try rows("SELECT client_id, id FROM profile WHERE client_id = ? AND deleted_at_ms IS NULL", [clientID])
      .compactMap { try? ProfileName($0) }
  }

  /// Returns the identifiers of all profiles of a user, including unreadable profiles.
  package func profileNames(of userID: UserID) throws -> [ProfileName] {
    try rows("SELECT client_id, id FROM profile WHERE user_id = ? AND deleted_at_ms IS NULL", [userID])
      .compactMap { try? ProfileName($0) }
  }

  /// Deleted profiles whose keys are still stored, newest first.
  package func formerProfiles(on clientID: ClientID, limit: Int) throws -> [Profile] {
    try rows(
      Profile.query(dialect)
        + " WHERE profile.client_id = ? AND former_server_key IS NOT NULL ORDER BY deleted_at_ms DESC LIMIT ?",
      [clientID, limit]
    ).compactMap { try? Profile($0) }
  }

  /// Returns the readable profiles of a user that are not deleted.
  package func profiles(of userID: UserID) throws -> [Profile] {
    try rows(Profile.query(dialect) + " WHERE user_id = ? AND deleted_at_ms IS NULL", [userID])
      .compactMap { try? Profile($0) }
  }

  package func profile(of userID: UserID, on clientID: ClientID) throws -> Profile? {
    try row(
      Profile.query(dialect) + " WHERE user_id = ? AND profile.client_id = ? AND deleted_at_ms IS NULL",
      [userID, clientID]
    ).map(Profile.init)
  }

  /// Replaces a deleted profile with the same id. A login that was under way when that one was deleted may have stored
  /// an access token since: it must not be one of the new user.
  package func insertProfile(
    _ id: ProfileID, on clientID: ClientID, userID: UserID, activation: [UInt8], now: Timestamp
  )
    throws
  {
    try forgettingServerKeys(of: ProfileName(clientID: clientID, id: id)) {
      try run(
        """
        INSERT INTO profile (client_id, id, user_id, activation, created_at_ms) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (client_id, id) DO UPDATE SET user_id = excluded.user_id, activation = excluded.activation,
          created_at_ms = excluded.created_at_ms, certificate = NULL, certificate_fingerprint = NULL,
          server_key = NULL, key_id = NULL, acknowledged = 0, push_token = NULL, push_transport = NULL,
          disenrolled = 0, deleted_at_ms = NULL, former_certificate = NULL, former_server_key = NULL
        """,
        [clientID, id, userID, activation, now])
    }
    try run("DELETE FROM access_token WHERE client_id = ? AND profile_id = ?", [clientID, id])
  }

  package func removeProfile(_ profile: ProfileName, now: Timestamp) throws {
    try forgettingServerKeys(of: profile) {
      try run(
        """
        UPDATE profile SET deleted_at_ms = ?, former_certificate = COALESCE(certificate, former_certificate),
          former_server_key = COALESCE(server_key, former_server_key), certificate = NULL,
          certificate_fingerprint = NULL, server_key = NULL, key_id = NULL, acknowledged = 0, push_token = NULL,
          push_transport = NULL
        WHERE client_id = ? AND id = ?
        """, [now, profile.clientID, profile.id])
    }
    try forgetKnowledge(of: profile)
    try run("DELETE FROM access_token WHERE client_id = ? AND profile_id = ?", [profile.clientID, profile.id])
  }
}
