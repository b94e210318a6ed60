// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import ReferenceProtocol

/// Proofs of knowledge of a PIN, and of possession of another authenticator's key.
extension DeviceClient {
  /// Creates an assertion that proves knowledge of a PIN, for one path of the device API.
  func assertion(
    by key: KnowledgeKey, for profile: String, path: String, nonce: String? = nil, authenticator: String? = nil
  ) async throws(TokenServerError) -> String {
    try await assertion(
      by: key, for: profile, audience: metadata.approvalDeviceAPI + path, nonce: nonce, authenticator: authenticator)
  }

  /// Creates an assertion that proves knowledge of a PIN, or possession of another authenticator's key.
  /// - Parameters:
  ///   - audience: the only URL for which the assertion is valid.
  ///   - identifier: the `jti`, a UUID; nil for a new one.
  ///   - authenticator: whose key it is; nil for the PIN's.
  ///   - dataSHA256: of the data that is sent with it, for a login with a custom authenticator; otherwise nil.
  func assertion(
    by key: KnowledgeKey, for profile: String, audience: String, nonce: String? = nil, identifier: String? = nil,
    authenticator: String? = nil, dataSHA256: String? = nil
  ) async throws(TokenServerError) -> String {
    try await hearTime()
    let claims = KnowledgeAssertion.Claims(
      clientID: clientID ?? "", profileID: profile, audience: audience,
      identifier: identifier ?? environment.makeUUID(), now: now,
      nonce: nonce, authenticator: authenticator, dataSHA256: dataSHA256)
    do { return try key.assertion(claims) } catch { throw .refused("signing failed: \(error)") }
  }
}
