// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// A newly created access token; the database stores only its hash.
struct NewAccessToken: Sendable {
  /// The lifetime in seconds.
  static let lifetime: Int64 = 900

  let response: AccessTokenResponse
  private let clientID: String
  private let hash: [UInt8]

  /// - Parameter profileID: set for a `user` token.
  init(for clientID: String, profileID: String?, hasher: KeyedHasher) {
    let token = Random.bytes(32).lowercaseHex
    self.clientID = clientID
    hash = hasher.hash(token, for: .accessToken)
    response = AccessTokenResponse(
      accessToken: token, expiresIn: Int(Self.lifetime), scope: profileID == nil ? .device : .user,
      profileID: profileID)
  }

  func insert(into database: Database, nowMs: Int64) throws {
    try database.insertAccessToken(
      hash, clientID: clientID, profileID: response.profileID, expiresAtMs: nowMs + Self.lifetime * 1000, nowMs: nowMs)
  }
}
