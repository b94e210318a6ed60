// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// Mobile authentication enrollment (keys) and push enrollment of a profile.
extension Database {
  func setKeys(
    of profile: Profile, certificate: [UInt8], fingerprint: String, serverKey: String, keyID: String
  ) throws {
    try run(
      """
      UPDATE profile SET certificate = ?, certificate_fingerprint = ?, server_key = ?, key_id = ?, acknowledged = 0,
        push_token = NULL, push_transport = NULL, disenrolled = 0
      WHERE client_id = ? AND id = ? AND deleted_at_ms IS NULL
      """, [certificate, fingerprint, serverKey, keyID, profile.clientID, profile.id])
  }

  func acknowledgeKeys(of profile: Profile) throws {
    try run(
      "UPDATE profile SET acknowledged = 1 WHERE client_id = ? AND id = ? AND key_id = ?",
      [profile.clientID, profile.id, profile.keyID])
  }

  func setPush(of profile: Profile, token: String, transport: DeviceConfiguration.Transport) throws {
    try run(
      """
      UPDATE profile SET push_token = ?, push_transport = ?, disenrolled = 0
      WHERE client_id = ? AND id = ? AND key_id = ? AND acknowledged
      """, [token, transport.rawValue, profile.clientID, profile.id, profile.keyID])
  }

  /// For a profile that is already enrolled for push.
  func setTransport(of profile: Profile, _ transport: DeviceConfiguration.Transport) throws {
    try run(
      "UPDATE profile SET push_transport = ? WHERE client_id = ? AND id = ? AND push_token IS NOT NULL",
      [transport.rawValue, profile.clientID, profile.id])
  }

  /// The client ids with at least one profile that uses the transport.
  func devices(withTransport transport: DeviceConfiguration.Transport) throws -> [String] {
    try rows(
      "SELECT DISTINCT client_id FROM profile WHERE push_transport = ? AND deleted_at_ms IS NULL", [transport.rawValue]
    ).compactMap { try? $0.text("client_id") }
  }

  enum Disenrollment: Sendable {
    case keysAndPush
    case pushOnly
  }

  /// Removes an enrollment; the user may enroll again.
  /// - Parameter byDevice: whether the device itself requested it, so that it need not be notified with "disenrolled"
  ///   later.
  func disenroll(
    _ profile: Profile, _ what: Disenrollment, byDevice: Bool = false, nowMs: Int64
  ) throws -> Effects {
    let had = what == .pushOnly ? profile.pushToken != nil : profile.certificate != nil
    guard had else { return Effects() }
    try run(
      "UPDATE profile SET push_token = NULL, push_transport = NULL, disenrolled = ? WHERE client_id = ? AND id = ?",
      [!byDevice, profile.clientID, profile.id])
    if what == .keysAndPush {
      try run(
        """
        UPDATE profile SET former_certificate = certificate, former_server_key = server_key, certificate = NULL, certificate_fingerprint = NULL, server_key = NULL, key_id = NULL,
          acknowledged = 0
        WHERE client_id = ? AND id = ?
        """, [profile.clientID, profile.id])
    }
    var effects = try failOpenTransactions(of: profile.name, nowMs: nowMs)
    if !byDevice { effects.notify(profile.clientID, DeviceEvent(.profileRevoked, profileID: profile.id)) }
    return effects
  }
}
