// SPDX-License-Identifier: Apache-2.0
import ServerTestSupport
import Testing

/// What a portal does at the servers.
extension TokenServerProcess {
  typealias PortalCredentials = (id: String, secret: String)

  /// Begins a transaction.
  /// - Returns: its id.
  func begin(
    _ type: String = "login", of user: String = "alice", on device: DeviceClient, as portal: PortalCredentials,
    callback: String = "https://portal.example/"
  ) throws -> String {
    let reply = try curl(
      "--user", "\(portal.id):\(portal.secret)", "--data", "type=\(type)&user_id=\(user)&device_id=\(device.clientID)",
      "--data", "callback_uri=\(callback)", url + "/oauth/api/v4/authenticate/user"
    ).expect(200)
    return try #require(reply.json["transaction_id"] as? String)
  }

  /// What a portal reads of a transaction.
  struct PortalResult {
    let isAuthenticated: Bool
    /// Why it ended without an approval; nil while it is open.
    let reason: String?
    /// The number of PIN attempts; nil if there was none.
    let attempts: Int?
  }

  func result(of transaction: String, as portal: PortalCredentials) throws -> PortalResult {
    let json = try curl(
      "--user", "\(portal.id):\(portal.secret)", url + "/oauth/api/v4/authenticate/transaction/\(transaction)"
    ).expect(200).json
    let reason = json["not_authenticated_reason"] as? [String: Any]
    return PortalResult(
      isAuthenticated: try #require(json["is_authenticated"] as? Bool), reason: reason?["reason"] as? String,
      attempts: json["used_authentication_attempts"] as? Int)
  }
}
