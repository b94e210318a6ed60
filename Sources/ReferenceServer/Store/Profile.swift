import Foundation
import GRDB
import ReferenceProtocol

/// A user on a device, and what of mobile authentication that pair has.
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
  /// The portal took keys or push enrolment away and the device has not made new ones yet.
  let isDisenrolled: Bool
  let isDeleted: Bool
  /// What its PIN is judged by, if it is to have one.
  let knowledge: Knowledge?

  var hasKeys: Bool { certificate != nil && isAcknowledged }
  var isEnrolledForPush: Bool { hasKeys && pushToken != nil }
  var hasPIN: Bool { knowledge?.isActive == true }

  /// Whether its user can be asked this way now.
  func canBeAsked(by method: ApprovalRequest.Method) -> Bool {
    isEnrolledForPush && (method != .pushWithPIN || hasPIN)
  }

  /// Profiles as `init` reads them; a condition follows.
  static let query = """
    SELECT profile.*, public_key AS knowledge_key, state AS knowledge_state, nonce AS knowledge_nonce,
      knowledge.activation AS knowledge_activation, failures AS knowledge_failures,
      proposed_at_ms AS knowledge_proposed_at_ms
    FROM profile LEFT JOIN knowledge ON knowledge.client_id = profile.client_id AND profile_id = profile.id
    """

  init(_ row: Row) throws {
    clientID = row["client_id"]
    id = row["id"]
    userID = row["user_id"]
    activation = row.bytes("activation")
    createdAtMs = row["created_at_ms"]
    certificate = (row["certificate"] as Data?).map { [UInt8]($0) }
    certificateFingerprint = row["certificate_fingerprint"]
    serverKey = row["server_key"]
    keyID = row["key_id"]
    isAcknowledged = row["acknowledged"]
    pushToken = row["push_token"]
    isDisenrolled = row["disenrolled"]
    isDeleted = row["deleted_at_ms"] != nil
    knowledge = try Knowledge(row)
  }
}

extension Database {
  /// Also a deleted one.
  func profile(_ id: String, on clientID: String) throws -> Profile? {
    try row(Profile.query + " WHERE profile.client_id = ? AND profile.id = ?", [clientID, id]).map(Profile.init)
  }

  func profiles(on clientID: String) throws -> [Profile] {
    try rows(Profile.query + " WHERE profile.client_id = ? AND deleted_at_ms IS NULL", [clientID])
      .map(Profile.init)
  }

  func profiles(of userID: String) throws -> [Profile] {
    try rows(Profile.query + " WHERE user_id = ? AND deleted_at_ms IS NULL", [userID]).map(Profile.init)
  }

  func profile(of userID: String, on clientID: String) throws -> Profile? {
    try row(
      Profile.query + " WHERE user_id = ? AND profile.client_id = ? AND deleted_at_ms IS NULL", [userID, clientID]
    ).map(Profile.init)
  }

  /// Takes the place of a tombstone with the same id.
  func insertProfile(_ id: String, on clientID: String, userID: String, activation: [UInt8], nowMs: Int64) throws {
    try run(
      "INSERT OR REPLACE INTO profile (client_id, id, user_id, activation, created_at_ms) VALUES (?, ?, ?, ?, ?)",
      [clientID, id, userID, Data(activation), nowMs])
  }

  /// User deregistration: the user's data on this device is gone, what was open for it fails.
  func deleteProfile(_ profile: Profile, nowMs: Int64) throws -> Effects {
    try run(
      """
      UPDATE profile SET deleted_at_ms = ?, certificate = NULL, certificate_fingerprint = NULL, server_key = NULL,
        key_id = NULL, acknowledged = 0, push_token = NULL, push_transport = NULL
      WHERE client_id = ? AND id = ?
      """, [nowMs, profile.clientID, profile.id])
    try forgetKnowledge(of: profile)
    try run("DELETE FROM access_token WHERE client_id = ? AND profile_id = ?", [profile.clientID, profile.id])
    var effects = try failOpenTransactions(of: profile, nowMs: nowMs)
    effects.tell(profile.clientID, DeviceEvent(.profileRevoked, profileID: profile.id))
    return effects
  }
}
