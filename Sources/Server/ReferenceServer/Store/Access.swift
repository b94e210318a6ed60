// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// Portals, activation codes, fleet tokens and access tokens.
struct APIClient: Sendable {
  let id: String
  let secretHash: [UInt8]
  let mayAuthenticate: Bool
  let mayManageDevices: Bool

  init(id: String, secretHash: [UInt8], mayAuthenticate: Bool, mayManageDevices: Bool) {
    self.id = id
    self.secretHash = secretHash
    self.mayAuthenticate = mayAuthenticate
    self.mayManageDevices = mayManageDevices
  }

  init(_ row: any SQLRow) throws(CorruptRowError) {
    id = try row.text("id")
    secretHash = try row.bytes("secret_hash")
    mayAuthenticate = try row.flag("mobile_authentication")
    mayManageDevices = try row.flag("end_user")
  }
}

/// A stored activation code and its use.
struct StoredActivationCode: Sendable {
  let userID: String
  /// The device that used it first; nil if unused.
  let clientID: String?
  let profileID: String?

  init(_ row: any SQLRow) throws(CorruptRowError) {
    userID = try row.text("user_id")
    clientID = try row.optionalText("client_id")
    profileID = try row.optionalText("profile_id")
  }
}

extension Database {
  /// Returns the readable API clients, ordered by id.
  func apiClients() throws -> [APIClient] {
    try rows("SELECT * FROM api_client ORDER BY id").compactMap { try? APIClient($0) }
  }

  func apiClient(_ id: String) throws -> APIClient? {
    try row("SELECT * FROM api_client WHERE id = ?", [id]).map(APIClient.init)
  }

  /// - Returns: false if the id is in use.
  func insertAPIClient(_ client: APIClient) throws -> Bool {
    try run(
      """
      INSERT INTO api_client (id, secret_hash, mobile_authentication, end_user) VALUES (?, ?, ?, ?)
      ON CONFLICT DO NOTHING
      """, [client.id, client.secretHash, client.mayAuthenticate, client.mayManageDevices]) > 0
  }

  /// - Returns: nil if there is none, or it has expired.
  func activationCode(_ hash: [UInt8], nowMs: Int64) throws -> StoredActivationCode? {
    try row("SELECT * FROM activation_code WHERE hash = ? AND expires_at_ms > ?", [hash, nowMs])
      .map(StoredActivationCode.init)
  }

  func insertActivationCode(_ hash: [UInt8], userID: String, expiresAtMs: Int64) throws {
    try run(
      "INSERT INTO activation_code (hash, user_id, expires_at_ms) VALUES (?, ?, ?)",
      [hash, userID, expiresAtMs])
  }

  func bindActivationCode(_ hash: [UInt8], to clientID: String, profile: String? = nil) throws {
    try run(
      "UPDATE activation_code SET client_id = ?, profile_id = ? WHERE hash = ?", [clientID, profile, hash])
  }

  func isFleetToken(_ hash: [UInt8]) throws -> Bool {
    try row("SELECT 1 FROM fleet_token WHERE hash = ?", [hash]) != nil
  }

  /// - Returns: false if the name is in use.
  func insertFleetToken(_ hash: [UInt8], name: String, nowMs: Int64) throws -> Bool {
    try run(
      "INSERT INTO fleet_token (hash, name, created_at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      [hash, name, nowMs]) > 0
  }

  /// - Returns: false if there is no fleet token with this name.
  func deleteFleetToken(named name: String) throws -> Bool {
    try run("DELETE FROM fleet_token WHERE name = ?", [name]) > 0
  }

  func insertAccessToken(_ hash: [UInt8], clientID: String, profileID: String?, expiresAtMs: Int64, nowMs: Int64) throws
  {
    try run(
      "INSERT INTO access_token (hash, client_id, profile_id, expires_at_ms) VALUES (?, ?, ?, ?)",
      [hash, clientID, profileID, expiresAtMs])
    try run("UPDATE device SET last_login_at_ms = ? WHERE id = ?", [nowMs, clientID])
  }

  /// The device that an access token was issued to (also a deleted one), and the profile of a user token.
  func accessToken(_ hash: [UInt8], nowMs: Int64) throws -> (device: Device, profileID: String?)? {
    try row(
      """
      SELECT device.*, access_token.profile_id FROM access_token JOIN device ON device.id = access_token.client_id
      WHERE access_token.hash = ? AND access_token.expires_at_ms > ?
      """, [hash, nowMs]
    ).map { (try Device($0), try $0.optionalText("profile_id")) }
  }

  func revokeAccessToken(_ hash: [UInt8], of clientID: String) throws {
    try run("DELETE FROM access_token WHERE hash = ? AND client_id = ?", [hash, clientID])
  }
}
