// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// A user on a device, with the state of mobile authentication.
struct Profile: Sendable {
  let clientID: String
  let id: String
  let userID: String
  let activation: [UInt8]
  let createdAtMs: Int64
  /// Binary OpenPGP certificate of the device for this profile.
  let certificate: [UInt8]?
  let certificateFingerprint: String?
  let serverKey: String?
  let keyID: String?
  let isAcknowledged: Bool
  let pushToken: String?
  /// The portal removed the keys or the push enrollment, and the device has not enrolled again yet.
  let isDisenrolled: Bool
  let isDeleted: Bool
  /// Keys of a removed enrollment.
  let formerCertificate: [UInt8]?
  let formerServerKey: String?
  /// The PIN verifier; nil without a PIN.
  let knowledge: PINVerifierRecord?

  var hasKeys: Bool { certificate != nil && isAcknowledged }
  var isEnrolledForPush: Bool { hasKeys && pushToken != nil }
  var hasPIN: Bool { knowledge?.isActive == true }

  /// Whether requests with this method can be sent to the user now.
  func canBeAsked(by method: ApprovalRequest.Method) -> Bool {
    isEnrolledForPush && (method != .pushWithPIN || hasPIN)
  }

  /// The query that `init` reads; a condition follows.
  static let query = """
    SELECT profile.*, public_key AS knowledge_key, state AS knowledge_state, nonce AS knowledge_nonce,
      knowledge.activation AS knowledge_activation, failures AS knowledge_failures,
      proposed_at_ms AS knowledge_proposed_at_ms
    FROM profile LEFT JOIN knowledge ON knowledge.client_id = profile.client_id AND profile_id = profile.id
    """

  init(_ row: any SQLRow) throws {
    clientID = try row.text("client_id")
    id = try row.text("id")
    userID = try row.text("user_id")
    activation = try row.bytes("activation")
    createdAtMs = try row.time("created_at_ms")
    certificate = try row.optionalBytes("certificate")
    certificateFingerprint = try row.optionalText("certificate_fingerprint")
    serverKey = try row.optionalText("server_key")
    keyID = try row.optionalText("key_id")
    isAcknowledged = try row.flag("acknowledged")
    pushToken = try row.optionalText("push_token")
    isDisenrolled = try row.flag("disenrolled")
    isDeleted = try row.optionalTime("deleted_at_ms") != nil
    formerCertificate = try row.optionalBytes("former_certificate")
    formerServerKey = try row.optionalText("former_server_key")
    knowledge = try PINVerifierRecord(row)
  }
}

/// The identifiers of a profile, which are readable even if other columns are not.
struct ProfileName: Sendable, Hashable {
  let clientID: String
  let id: String

  init(clientID: String, id: String) {
    self.clientID = clientID
    self.id = id
  }

  init(_ row: any SQLRow) throws(CorruptRowError) {
    clientID = try row.text("client_id")
    id = try row.text("id")
  }
}

extension Profile {
  var name: ProfileName { ProfileName(clientID: clientID, id: id) }
}

extension Database {
  /// Finds deleted profiles too.
  func profile(_ id: String, on clientID: String) throws -> Profile? {
    try row(Profile.query + " WHERE profile.client_id = ? AND profile.id = ?", [clientID, id]).map(Profile.init)
  }

  /// Returns the readable profiles of a device that are not deleted.
  func profiles(on clientID: String) throws -> [Profile] {
    try rows(Profile.query + " WHERE profile.client_id = ? AND deleted_at_ms IS NULL", [clientID])
      .compactMap { try? Profile($0) }
  }

  /// Returns the identifiers of all profiles of a device, including unreadable profiles, so that they can be deleted.
  func profileNames(on clientID: String) throws -> [ProfileName] {
    try rows("SELECT client_id, id FROM profile WHERE client_id = ? AND deleted_at_ms IS NULL", [clientID])
      .compactMap { try? ProfileName($0) }
  }

  /// Returns the identifiers of all profiles of a user, including unreadable profiles.
  func profileNames(of userID: String) throws -> [ProfileName] {
    try rows("SELECT client_id, id FROM profile WHERE user_id = ? AND deleted_at_ms IS NULL", [userID])
      .compactMap { try? ProfileName($0) }
  }

  /// Deleted profiles whose keys are still stored, newest first.
  func formerProfiles(on clientID: String, limit: Int) throws -> [Profile] {
    try rows(
      Profile.query
        + " WHERE profile.client_id = ? AND former_server_key IS NOT NULL ORDER BY deleted_at_ms DESC LIMIT ?",
      [clientID, limit]
    ).compactMap { try? Profile($0) }
  }

  /// Returns the readable profiles of a user that are not deleted.
  func profiles(of userID: String) throws -> [Profile] {
    try rows(Profile.query + " WHERE user_id = ? AND deleted_at_ms IS NULL", [userID])
      .compactMap { try? Profile($0) }
  }

  func profile(of userID: String, on clientID: String) throws -> Profile? {
    try row(
      Profile.query + " WHERE user_id = ? AND profile.client_id = ? AND deleted_at_ms IS NULL", [userID, clientID]
    ).map(Profile.init)
  }

  /// Replaces a deleted profile with the same id.
  func insertProfile(_ id: String, on clientID: String, userID: String, activation: [UInt8], nowMs: Int64) throws {
    try run(
      "INSERT OR REPLACE INTO profile (client_id, id, user_id, activation, created_at_ms) VALUES (?, ?, ?, ?, ?)",
      [clientID, id, userID, activation, nowMs])
  }

  /// Deregisters the user on this device: deletes the data and fails open transactions.
  func deleteProfile(_ profile: Profile, nowMs: Int64) throws -> Effects {
    try deleteProfile(profile.name, nowMs: nowMs)
  }

  /// Deregisters the user on this device, even if the profile is unreadable.
  func deleteProfile(_ profile: ProfileName, nowMs: Int64) throws -> Effects {
    try run(
      """
      UPDATE profile SET deleted_at_ms = ?, former_certificate = COALESCE(certificate, former_certificate),
        former_server_key = COALESCE(server_key, former_server_key), certificate = NULL, certificate_fingerprint = NULL, server_key = NULL,
        key_id = NULL, acknowledged = 0, push_token = NULL, push_transport = NULL
      WHERE client_id = ? AND id = ?
      """, [nowMs, profile.clientID, profile.id])
    try forgetKnowledge(of: profile)
    try run("DELETE FROM access_token WHERE client_id = ? AND profile_id = ?", [profile.clientID, profile.id])
    var effects = try failOpenTransactions(of: profile, nowMs: nowMs)
    effects.notify(profile.clientID, DeviceEvent(.profileRevoked, profileID: profile.id))
    return effects
  }
}
