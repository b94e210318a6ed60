// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol
package import TokenServerCore

/// Mobile authentication enrollment (keys) and push enrollment of a profile.
extension Database {
  /// Replaced keys end a push enrollment, as `removePush` does.
  /// - Returns: false if the profile has been deleted.
  package func setKeys(
    of profile: Profile, certificate: [UInt8], fingerprint: String, serverKey: String, keyID: String
  ) throws -> Bool {
    try run(
      """
      DELETE FROM activation_code WHERE hash IN (
        SELECT activation FROM profile WHERE client_id = ? AND id = ? AND push_token IS NOT NULL)
      """, [profile.clientID, profile.id])
    return try forgettingServerKeys(of: profile.name) {
      try run(
        """
        UPDATE profile SET certificate = ?, certificate_fingerprint = ?, server_key = ?, key_id = ?, acknowledged = 0,
          push_token = NULL, push_transport = NULL, disenrolled = 0
        WHERE client_id = ? AND id = ? AND deleted_at_ms IS NULL
        """, [certificate, fingerprint, serverKey, keyID, profile.clientID, profile.id]) > 0
    }
  }

  /// - Returns: false if the profile has other keys by now, or none.
  package func acknowledgeKeys(of profile: Profile) throws -> Bool {
    try run(
      "UPDATE profile SET acknowledged = 1 WHERE client_id = ? AND id = ? AND key_id = ?",
      [profile.clientID, profile.id, profile.keyID]) > 0
  }

  /// - Returns: false if the profile has other keys by now, or none.
  package func setPush(of profile: Profile, token: String, transport: DeviceConfiguration.Transport) throws -> Bool {
    try run(
      """
      UPDATE profile SET push_token = ?, push_transport = ?, disenrolled = 0
      WHERE client_id = ? AND id = ? AND key_id = ? AND acknowledged = 1
      """, [token, transport.rawValue, profile.clientID, profile.id, profile.keyID]) > 0
  }

  /// For a profile that is already enrolled for push.
  /// - Returns: false if it is not.
  package func setTransport(of profile: Profile, _ transport: DeviceConfiguration.Transport) throws -> Bool {
    try run(
      "UPDATE profile SET push_transport = ? WHERE client_id = ? AND id = ? AND push_token IS NOT NULL",
      [transport.rawValue, profile.clientID, profile.id]) > 0
  }

  /// The client ids with at least one profile that uses the transport.
  /// - Parameter devices: only these; nil for all.
  package func devices(
    withTransport transport: DeviceConfiguration.Transport, among devices: Set<ClientID>? = nil
  ) throws -> Set<ClientID> {
    let (condition, list) = condition(for: devices)
    let found = try rows(
      "SELECT DISTINCT client_id FROM profile WHERE push_transport = ? AND deleted_at_ms IS NULL\(condition)",
      [transport.rawValue] + list)
    return Set(found.compactMap { try? $0.clientID("client_id") })
  }

  package func hasMailbox(_ device: ClientID) throws -> Bool {
    try !devices(withTransport: .mqtt, among: [device]).isEmpty
  }

  /// The end of a condition that `client_id` is one of the devices, and its parameter; empty for nil.
  func condition(for devices: Set<ClientID>?) -> (String, [String]) {
    guard let devices else { return ("", []) }
    return (
      " AND client_id IN (\(dialect.textsOfList))", [String(decoding: JSON.encode(devices.map(\.text)), as: UTF8.self)]
    )
  }

  package func removePush(of profile: ProfileName, byDevice: Bool) throws {
    try run(
      "UPDATE profile SET push_token = NULL, push_transport = NULL, disenrolled = ? WHERE client_id = ? AND id = ?",
      [!byDevice, profile.clientID, profile.id])
    // What is left looks like an interrupted enrollment, which the code may continue.
    try run(
      "DELETE FROM activation_code WHERE hash IN (SELECT activation FROM profile WHERE client_id = ? AND id = ?)",
      [profile.clientID, profile.id])
  }

  package func removeKeys(of profile: ProfileName) throws {
    try forgettingServerKeys(of: profile) {
      try run(
        """
        UPDATE profile SET former_certificate = certificate, former_server_key = server_key, certificate = NULL,
          certificate_fingerprint = NULL, server_key = NULL, key_id = NULL, acknowledged = 0
        WHERE client_id = ? AND id = ?
        """, [profile.clientID, profile.id])
    }
  }
}
