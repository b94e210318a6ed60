// SPDX-License-Identifier: Apache-2.0
/// One event of `GET /events`. As SSE, `id` is the cursor, `event` the kind, and `data` this value as JSON. A long poll
/// returns a list. An event is only a hint: the pending list is authoritative.
package struct DeviceEvent: Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable {
    case request
    case requestClosed = "request-closed"
    case profileRevoked = "profile-revoked"
    case deviceRevoked = "device-revoked"
    /// The server deregistered an authenticator of a profile.
    case authenticatorRevoked = "authenticator-revoked"
    /// The cursor was too old, or events were dropped: read the list.
    case resync

    /// A kind that this version does not know is a `resync`, so that a newer server can add kinds.
    package init(from decoder: any Decoder) throws {
      self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .resync
    }
  }

  package enum ClosingReason: String, Codable, Sendable {
    case answered, expired, canceled = "cancelled", superseded, revoked
  }

  package var kind: Kind
  package var transactionID: String?
  package var profileID: String?
  package var reason: ClosingReason?
  /// In an event stream: the server's current nonce for DPoP proofs, as in its header `DPoP-Nonce`, so that the next
  /// request needs no second attempt. Optional.
  package var dpopNonce: String?
  /// With `authenticator-revoked`: the identifier.
  package var authenticator: String?

  enum CodingKeys: String, CodingKey {
    case kind
    case transactionID = "transaction_id"
    case profileID = "profile_id"
    case reason, authenticator
    case dpopNonce = "dpop_nonce"
  }

  package init(
    _ kind: Kind, transactionID: String? = nil, profileID: String? = nil, reason: ClosingReason? = nil,
    authenticator: String? = nil
  ) {
    self.kind = kind
    self.transactionID = transactionID
    self.profileID = profileID
    self.reason = reason
    self.authenticator = authenticator
  }
}

/// The `200` response to a long poll (`Accept: application/json`, `Prefer: wait=55`, `?after=CURSOR`); `204` without
/// events.
package struct EventPage: Codable, Sendable, Equatable {
  package var cursor: String
  package var events: [DeviceEvent]

  package init(cursor: String, events: [DeviceEvent]) {
    self.cursor = cursor
    self.events = events
  }
}

/// `POST /events/acks`: the delivery report of a device of an earlier version. A request counts as delivered when the
/// device is sent a list with it.
package struct EventAcknowledgement: Codable, Sendable, Equatable {
  /// The IDs of events of a stream.
  package var ids: [String]
  /// The requests in these events. Optional.
  package var transactions: [String]?

  package init(ids: [String], transactions: [String]? = nil) {
    self.ids = ids
    self.transactions = transactions
  }
}
