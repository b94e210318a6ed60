// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
package import TokenServerCore

/// Portals, activation codes, fleet tokens and access tokens.
package struct APIClient: Sendable {
  package let id: String
  package let secretHash: [UInt8]
  package let mayAuthenticate: Bool
  package let mayManageDevices: Bool
  package let mayIntrospect: Bool

  package init(id: String, secretHash: [UInt8], mayAuthenticate: Bool, mayManageDevices: Bool, mayIntrospect: Bool) {
    self.id = id
    self.secretHash = secretHash
    self.mayAuthenticate = mayAuthenticate
    self.mayManageDevices = mayManageDevices
    self.mayIntrospect = mayIntrospect
  }

  init(_ row: any SQLRow) throws(CorruptRowError) {
    id = try row.text("id")
    secretHash = try row.bytes("secret_hash")
    mayAuthenticate = try row.flag("mobile_authentication")
    mayManageDevices = try row.flag("end_user")
    mayIntrospect = try row.flag("introspection")
  }
}

/// Whom an access token was issued to: what each request of a device needs.
package struct AccessTokenOwner: Sendable, Equatable {
  package let clientID: ClientID
  /// Set for a user token.
  package let profileID: ProfileID?
  /// The thumbprint (RFC 7638) of the device's key, to which the token is bound.
  package let keyThumbprint: String
  /// Whether the device is deleted.
  package let isDeleted: Bool
  /// Nil for a token of an earlier version of the server.
  package let origin: AccessTokenOrigin?

  init(_ row: any SQLRow) throws(CorruptRowError) {
    clientID = try row.clientID("client_id")
    profileID = try row.optionalText("profile_id").map(ProfileID.init)
    keyThumbprint = try row.text("key_thumbprint")
    isDeleted = try row.optionalTime("deleted_at_ms") != nil
    origin = AccessTokenOrigin(try row.text("origin"))
  }
}

/// An access token that is valid now.
package struct ValidAccessToken: Sendable, Equatable {
  package let clientID: ClientID
  /// The thumbprint (RFC 7638) of the device's key, to which the token is bound.
  package let keyThumbprint: String
  package let softwareVersion: String
  /// Set for a user token.
  package let profileID: ProfileID?
  package let userID: UserID?
  /// Nil for a token of an earlier version of the server.
  package let origin: AccessTokenOrigin?
  package let expiresAt: Timestamp

  init(_ row: any SQLRow) throws(CorruptRowError) {
    clientID = try row.clientID("client_id")
    keyThumbprint = try row.text("key_thumbprint")
    softwareVersion = try row.text("software_version")
    profileID = try row.optionalText("profile_id").map(ProfileID.init)
    userID = try row.optionalText("user_id").map(UserID.init)
    origin = AccessTokenOrigin(try row.text("origin"))
    expiresAt = try row.time("expires_at_ms")
  }
}

extension StoredActivationCode {
  init(_ row: any SQLRow) throws(CorruptRowError) {
    self.init(
      userID: try row.userID("user_id"), clientID: try row.optionalText("client_id").map(ClientID.init),
      profileID: try row.optionalText("profile_id").map(ProfileID.init))
  }
}

extension Database {
  /// Returns the readable API clients, ordered by id.
  package func apiClients() throws -> [APIClient] {
    try rows("SELECT * FROM api_client ORDER BY id").compactMap { try? APIClient($0) }
  }

  package func apiClient(_ id: String) throws -> APIClient? {
    try row("SELECT * FROM api_client WHERE id = ?", [id]).map(APIClient.init)
  }

  /// - Returns: false if the id is in use.
  package func insertAPIClient(_ client: APIClient) throws -> Bool {
    try run(
      """
      INSERT INTO api_client (id, secret_hash, mobile_authentication, end_user, introspection) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO NOTHING
      """,
      [client.id, client.secretHash, client.mayAuthenticate, client.mayManageDevices, client.mayIntrospect]) > 0
  }

  /// Replaces the secret; the former one is invalid at once.
  /// - Returns: false if there is no such client.
  package func renewAPIClient(_ id: String, secretHash: [UInt8]) throws -> Bool {
    try run("UPDATE api_client SET secret_hash = ?, needs_former_pepper = 0 WHERE id = ?", [secretHash, id]) > 0
  }

  /// Deletes the client. Its open transactions end as canceled, and its callbacks are not sent.
  /// - Returns: nil if there is no such client.
  package func deleteAPIClient(_ id: String, now: Timestamp) throws -> Effects? {
    guard try run("DELETE FROM api_client WHERE id = ?", [id]) > 0 else { return nil }
    var effects = Effects()
    for transaction in try openTransactions(startedBy: id) {
      try end(transaction, .canceled, now: now).map { effects.add($0) }
    }
    try run("DELETE FROM callback WHERE portal = ?", [id])
    return effects
  }

  /// - Returns: nil if there is none, or it has expired.
  package func activationCode(_ hash: [UInt8], now: Timestamp) throws -> StoredActivationCode? {
    try row("SELECT * FROM activation_code WHERE hash = ? AND expires_at_ms > ?", [hash, now])
      .map(StoredActivationCode.init)
  }

  /// The readable codes that have not expired, ordered by user and expiry.
  package func activationCodes(now: Timestamp) throws -> [(code: StoredActivationCode, expiresAt: Timestamp)] {
    try rows("SELECT * FROM activation_code WHERE expires_at_ms > ? ORDER BY user_id, expires_at_ms, hash", [now])
      .compactMap { row in try? (StoredActivationCode(row), row.time("expires_at_ms")) }
  }

  /// - Parameter userID: nil for all users.
  /// - Returns: the number of deleted codes.
  @discardableResult
  package func deleteActivationCodes(of userID: UserID?) throws -> Int {
    guard let userID else { return try run("DELETE FROM activation_code") }
    return try run("DELETE FROM activation_code WHERE user_id = ?", [userID])
  }

  package func insertActivationCode(_ hash: [UInt8], userID: UserID, expiresAt: Timestamp) throws {
    try run(
      "INSERT INTO activation_code (hash, user_id, expires_at_ms) VALUES (?, ?, ?)",
      [hash, userID, expiresAt])
  }

  package func bindActivationCode(_ hash: [UInt8], to clientID: ClientID, profile: ProfileID?) throws {
    try run(
      "UPDATE activation_code SET client_id = ?, profile_id = ? WHERE hash = ?", [clientID, profile, hash])
  }

  /// The readable fleet tokens, ordered by name, each with the number of its devices that are not deleted.
  package func fleetTokens() throws -> [(name: String, createdAt: Timestamp, devices: Int)] {
    try rows(
      """
      SELECT name, created_at_ms, (
        SELECT COUNT(*) FROM device WHERE device.credential = fleet_token.hash AND device.deleted_at_ms IS NULL
      ) AS devices FROM fleet_token ORDER BY name
      """
    ).compactMap { row in try? (row.text("name"), row.time("created_at_ms"), row.count("devices")) }
  }

  package func isFleetToken(_ hash: [UInt8]) throws -> Bool {
    try row("SELECT 1 FROM fleet_token WHERE hash = ?", [hash]) != nil
  }

  /// - Returns: false if the name is in use.
  package func insertFleetToken(_ hash: [UInt8], name: String, now: Timestamp) throws -> Bool {
    try run(
      "INSERT INTO fleet_token (hash, name, created_at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      [hash, name, now]) > 0
  }

  /// - Returns: false if there is no fleet token with this name.
  package func deleteFleetToken(named name: String) throws -> Bool {
    try run("DELETE FROM fleet_token WHERE name = ?", [name]) > 0
  }

  package func insertAccessToken(
    _ hash: [UInt8], clientID: ClientID, profileID: ProfileID?, by origin: AccessTokenOrigin, expiresAt: Timestamp,
    now: Timestamp
  ) throws {
    try run(
      "INSERT INTO access_token (hash, client_id, profile_id, origin, expires_at_ms) VALUES (?, ?, ?, ?, ?)",
      [hash, clientID, profileID, origin.text, expiresAt])
    try run("UPDATE device SET last_login_at_ms = ? WHERE id = ?", [now, clientID])
  }

  /// The device that an access token was issued to, also a deleted one.
  package func accessTokenOwner(_ hash: [UInt8], now: Timestamp) throws -> AccessTokenOwner? {
    try row(
      """
      SELECT access_token.client_id, access_token.profile_id, access_token.origin, device.key_thumbprint,
        device.deleted_at_ms
      FROM access_token JOIN device ON device.id = access_token.client_id
      WHERE access_token.hash = ? AND access_token.expires_at_ms > ?
      """, [hash, now]
    ).map(AccessTokenOwner.init)
  }

  /// A valid access token of a device and, if it is a user token, of a profile that still exist.
  package func validAccessToken(_ hash: [UInt8], now: Timestamp) throws -> ValidAccessToken? {
    try row(
      """
      SELECT access_token.*, device.key_thumbprint, device.software_version, profile.user_id
      FROM access_token JOIN device ON device.id = access_token.client_id AND device.deleted_at_ms IS NULL
        LEFT JOIN profile ON profile.client_id = access_token.client_id AND profile.id = access_token.profile_id
          AND profile.deleted_at_ms IS NULL
      WHERE hash = ? AND expires_at_ms > ? AND (access_token.profile_id IS NULL OR profile.id IS NOT NULL)
      """, [hash, now]
    ).map(ValidAccessToken.init)
  }

  package func revokeAccessToken(_ hash: [UInt8], of clientID: ClientID) throws {
    try run("DELETE FROM access_token WHERE hash = ? AND client_id = ?", [hash, clientID])
  }
}
