// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol

/// A newly created access token; the database stores only its hash.
package struct NewAccessToken: Sendable {
  /// The lifetime in seconds.
  package static let lifetime: Int64 = 900

  package let response: AccessTokenResponse
  private let clientID: ClientID
  private let profileID: ProfileID?
  private let origin: AccessTokenOrigin
  private let hash: [UInt8]

  /// - Parameter profileID: set for a `user` token.
  package init(for clientID: ClientID, profileID: ProfileID?, by origin: AccessTokenOrigin, hasher: KeyedHasher) {
    let token = Random.bytes(32).lowercaseHex
    self.clientID = clientID
    self.profileID = profileID
    self.origin = origin
    hash = hasher.hash(token, for: .accessToken)
    response = AccessTokenResponse(
      accessToken: token, expiresIn: Int(Self.lifetime), scope: profileID == nil ? .device : .user,
      profileID: profileID?.text)
  }

  package func insert(into records: any ServerRecords, now: Timestamp) throws {
    try records.insertAccessToken(
      hash, clientID: clientID, profileID: profileID, by: origin, expiresAt: now + .seconds(Self.lifetime),
      now: now)
  }
}
