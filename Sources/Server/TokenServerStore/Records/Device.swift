// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import ReferenceProtocol
package import TokenServerCore

/// A registered device: one OAuth client with one key.
package struct Device: Sendable {
  package let id: ClientID
  package let name: String
  package let softwareID: String
  package let softwareVersion: String
  package let osVersion: String?
  package let boardSerial: String?
  /// JSON.
  package let capabilities: String
  package let key: P256PublicKey
  package let keyThumbprint: String
  package let createdAt: Timestamp
  package let lastLoginAt: Timestamp?
  package let isDeleted: Bool

  init(_ row: any SQLRow) throws {
    id = try row.clientID("id")
    name = try row.text("name")
    softwareID = try row.text("software_id")
    softwareVersion = try row.text("software_version")
    osVersion = try row.optionalText("os_version")
    boardSerial = try row.optionalText("board_serial")
    capabilities = try row.text("capabilities")
    key = try P256PublicKey(x: row.bytes("key_x"), y: row.bytes("key_y"))
    keyThumbprint = try row.text("key_thumbprint")
    createdAt = try row.time("created_at_ms")
    lastLoginAt = try row.optionalTime("last_login_at_ms")
    isDeleted = try row.optionalTime("deleted_at_ms") != nil
  }
}

extension Database {
  /// Returns the readable devices that are not deleted, oldest first.
  package func devices() throws -> [Device] {
    try rows("SELECT * FROM device WHERE deleted_at_ms IS NULL ORDER BY created_at_ms").compactMap { try? Device($0) }
  }

  /// Finds deleted devices too.
  package func device(_ id: ClientID) throws -> Device? {
    try row("SELECT * FROM device WHERE id = ?", [id]).map(Device.init)
  }

  /// - Returns: nil if the device does not exist or its row is unreadable.
  package func readableDevice(_ id: ClientID) throws -> Device? {
    try row("SELECT * FROM device WHERE id = ?", [id]).flatMap { try? Device($0) }
  }

  /// Whether a device exists that is not deleted. An unreadable row counts.
  package func hasDevice(_ id: ClientID) throws -> Bool {
    try row("SELECT 1 FROM device WHERE id = ? AND deleted_at_ms IS NULL", [id]) != nil
  }

  package func device(registeredWith credential: [UInt8], thumbprint: String) throws -> Device? {
    try row(
      "SELECT * FROM device WHERE credential = ? AND key_thumbprint = ? AND deleted_at_ms IS NULL",
      [credential, thumbprint]
    ).map(Device.init)
  }

  /// The number of devices that are registered, or were deleted after `deleted`.
  package func deviceCount(registeredWith credential: [UInt8], orDeletedAfter deleted: Timestamp) throws -> Int {
    // One condition each, for which an index has just these rows.
    try row(
      """
      SELECT (SELECT COUNT(*) FROM device WHERE credential = ? AND deleted_at_ms IS NULL)
        + (SELECT COUNT(*) FROM device WHERE credential = ? AND deleted_at_ms > ?) AS count
      """, [credential, credential, deleted]
    ).map { try $0.count("count") } ?? 0
  }

  package func insertDevice(
    id: ClientID, registration: RegistrationRequest, key: P256PublicKey, credential: [UInt8], now: Timestamp
  ) throws {
    try run(
      """
      INSERT INTO device (id, name, software_id, software_version, capabilities, key_x, key_y, key_thumbprint,
        credential, created_at_ms, board_serial)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        id, registration.clientName, registration.softwareID, registration.softwareVersion,
        String(decoding: JSON.encode(registration.approvalCapabilities), as: UTF8.self), key.x, key.y,
        JWK(key).thumbprint, credential, now,
        registration.boardSerial,
      ])
  }

  package func noteSoftware(of device: ClientID, version: String, osVersion: String, capabilities: String) throws {
    try run(
      "UPDATE device SET software_version = ?, os_version = ?, capabilities = ? WHERE id = ?",
      [version, osVersion, capabilities, device])
  }

  package func removeDevice(_ id: ClientID, now: Timestamp) throws -> Bool {
    try run("UPDATE device SET deleted_at_ms = ? WHERE id = ? AND deleted_at_ms IS NULL", [now, id]) > 0
  }

  package func deviceName(_ clientID: ClientID) throws -> String? {
    try row("SELECT name FROM device WHERE id = ?", [clientID]).map { try $0.text("name") }
  }
}
