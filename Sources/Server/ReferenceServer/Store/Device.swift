// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// A registered device: one OAuth client with one key.
struct Device: Sendable {
  let id: String
  let name: String
  let softwareID: String
  let softwareVersion: String
  let osVersion: String?
  /// JSON.
  let capabilities: String
  let key: P256PublicKey
  let keyThumbprint: String
  let createdAtMs: Int64
  let lastLoginAtMs: Int64?
  let isDeleted: Bool

  init(_ row: any SQLRow) throws {
    id = try row.text("id")
    name = try row.text("name")
    softwareID = try row.text("software_id")
    softwareVersion = try row.text("software_version")
    osVersion = try row.optionalText("os_version")
    capabilities = try row.text("capabilities")
    key = try P256PublicKey(x: row.bytes("key_x"), y: row.bytes("key_y"))
    keyThumbprint = try row.text("key_thumbprint")
    createdAtMs = try row.time("created_at_ms")
    lastLoginAtMs = try row.optionalTime("last_login_at_ms")
    isDeleted = try row.optionalTime("deleted_at_ms") != nil
  }
}

extension Database {
  /// Returns the readable devices that are not deleted, oldest first.
  func devices() throws -> [Device] {
    try rows("SELECT * FROM device WHERE deleted_at_ms IS NULL ORDER BY created_at_ms").compactMap { try? Device($0) }
  }

  /// Finds deleted devices too.
  func device(_ id: String) throws -> Device? {
    try row("SELECT * FROM device WHERE id = ?", [id]).map(Device.init)
  }

  /// - Returns: nil if the device does not exist or its row is unreadable.
  func readableDevice(_ id: String) throws -> Device? {
    try row("SELECT * FROM device WHERE id = ?", [id]).flatMap { try? Device($0) }
  }

  /// Whether a device exists that is not deleted. An unreadable row counts.
  func hasDevice(_ id: String) throws -> Bool {
    try row("SELECT 1 FROM device WHERE id = ? AND deleted_at_ms IS NULL", [id]) != nil
  }

  func device(registeredWith credential: [UInt8], thumbprint: String) throws -> Device? {
    try row(
      "SELECT * FROM device WHERE credential = ? AND key_thumbprint = ? AND deleted_at_ms IS NULL",
      [credential, thumbprint]
    ).map(Device.init)
  }

  /// The number of devices, without deleted ones.
  func deviceCount(registeredWith credential: [UInt8]) throws -> Int {
    try row(
      "SELECT COUNT(*) AS count FROM device WHERE credential = ? AND deleted_at_ms IS NULL", [credential]
    ).map { try $0.count("count") } ?? 0
  }

  func insertDevice(
    id: String, registration: RegistrationRequest, key: P256PublicKey, credential: [UInt8], nowMs: Int64
  ) throws {
    try run(
      """
      INSERT INTO device (id, name, software_id, software_version, capabilities, key_x, key_y, key_thumbprint,
        credential, created_at_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        id, registration.clientName, registration.softwareID, registration.softwareVersion,
        String(decoding: JSON.encode(registration.approvalCapabilities), as: UTF8.self), key.x, key.y,
        JWK(key).thumbprint, credential, nowMs,
      ])
  }

  func noteSoftware(of device: String, version: String, osVersion: String, capabilities: String) throws {
    try run(
      "UPDATE device SET software_version = ?, os_version = ?, capabilities = ? WHERE id = ?",
      [version, osVersion, capabilities, device])
  }

  /// Deletes the device and all its profiles. Idempotent.
  func deleteDevice(_ id: String, nowMs: Int64) throws -> Effects {
    var effects = Effects()
    guard try run("UPDATE device SET deleted_at_ms = ? WHERE id = ? AND deleted_at_ms IS NULL", [nowMs, id]) > 0 else {
      return effects
    }
    for profile in try profileNames(on: id) { effects.add(try deleteProfile(profile, nowMs: nowMs)) }
    effects.notify(id, DeviceEvent(.deviceRevoked))
    return effects
  }
}
