// SPDX-License-Identifier: Apache-2.0
/// `GET /pending`: newest first, equal times by transaction ID. The list can be empty. Entries with a time out of range
/// are dropped when decoding.
package struct PendingList: Codable, Sendable, Equatable {
  /// The query with which a device asks for the message of the newest request, too. Servers that do not know it ignore
  /// it.
  package static let includingMessage = (name: "include", value: "message")
  /// The maximum length of a message in the list, as Base64. A longer one is fetched.
  package static let longestMessage = 65_536

  package var serverTimeMs: Int64
  package var requests: [PendingEntry]

  enum CodingKeys: String, CodingKey {
    case serverTimeMs = "server_time_ms"
    case requests
  }

  package init(serverTimeMs: Int64, requests: [PendingEntry]) {
    self.serverTimeMs = serverTimeMs
    self.requests = requests
  }
}

extension PendingList: ChecksOwnNumbers {
  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    let time = try members.decode(Int64.self, forKey: .serverTimeMs)
    guard (0...JSON.largestNumber).contains(time) else {
      throw DecodingError.dataCorruptedError(forKey: .serverTimeMs, in: members, debugDescription: "out of range")
    }
    let entries = try members.decode([PendingEntry].self, forKey: .requests)
    self.init(serverTimeMs: time, requests: entries.filter(\.isInRange))
  }
}

extension PendingEntry {
  fileprivate var isInRange: Bool {
    [sentAtMs, timeToLiveMs, expiresInMs].allSatisfy { (0...JSON.largestNumber).contains($0) }
  }
}

package struct PendingEntry: Codable, Sendable, Equatable {
  package var transactionID: String
  package var profileID: String
  /// The portal's short message, at most 155 characters. Neither secret nor authenticated.
  package var message: String?
  package var typeHint: String?
  package var sentAtMs: Int64
  package var timeToLiveMs: Int64
  package var expiresInMs: Int64
  /// The `message` of `SealedRequest`, as `GET /requests/{tid}/message` would return it now. Optional: in the first
  /// entry of a list with `includingMessage`.
  package var sealedMessage: String?

  enum CodingKeys: String, CodingKey {
    case transactionID = "transaction_id"
    case profileID = "profile_id"
    case message
    case sealedMessage = "sealed_message"
    case typeHint = "type_hint"
    case sentAtMs = "sent_at_ms"
    case timeToLiveMs = "time_to_live_ms"
    case expiresInMs = "expires_in_ms"
  }

  package init(
    transactionID: String, profileID: String, message: String?, typeHint: String?, sentAtMs: Int64,
    timeToLiveMs: Int64, expiresInMs: Int64, sealedMessage: String? = nil
  ) {
    self.transactionID = transactionID
    self.profileID = profileID
    self.message = message
    self.sealedMessage = sealedMessage
    self.typeHint = typeHint
    self.sentAtMs = sentAtMs
    self.timeToLiveMs = timeToLiveMs
    self.expiresInMs = expiresInMs
  }
}

/// `GET /requests/{tid}/message`: can be repeated by the same device until the request has ended.
package struct SealedRequest: Codable, Sendable, Equatable {
  /// Base64 OpenPGP message whose content is an `ApprovalRequest`.
  package var message: String
  package var expiresInMs: Int64

  enum CodingKeys: String, CodingKey {
    case message
    case expiresInMs = "expires_in_ms"
  }

  package init(message: String, expiresInMs: Int64) {
    self.message = message
    self.expiresInMs = expiresInMs
  }
}

/// `POST /requests/{tid}/answers`, with an `Idempotency-Key`.
package struct SealedAnswer: Codable, Sendable, Equatable {
  /// Base64 OpenPGP message whose content is an `ApprovalAnswer`.
  package var answer: String

  package init(answer: String) { self.answer = answer }
}

/// The user's reason for a denial.
package enum DenialReason: String, Codable, Sendable { case declined, canceled = "cancelled", notMe = "not_me" }

/// `POST /requests/{tid}/denials`, with an `Idempotency-Key`: a denial without reading the message first.
package struct Denial: Codable, Sendable, Equatable {
  package var reason: DenialReason
  /// Why the device cannot open the request, for the log.
  package var underlyingError: String?

  enum CodingKeys: String, CodingKey {
    case reason
    case underlyingError = "underlying_error"
  }

  package init(reason: DenialReason, underlyingError: String? = nil) {
    self.reason = reason
    self.underlyingError = underlyingError
  }
}

/// The state of a request on the server. All states except `open` are final.
package enum RequestState: String, Codable, Sendable {
  case open, authenticated, rejected, failed, expired, canceled = "cancelled", superseded
}

/// `200` to an answer or a denial, and `GET /requests/{tid}`.
package struct RequestStatus: Codable, Sendable, Equatable {
  package var state: RequestState
  /// The server's reference for the accepted answer; the same for every repeat.
  package var receipt: String?
  /// Set only while the state is `open`.
  package var expiresInMs: Int64?
  /// The `Idempotency-Key` of the accepted answer; set only for the device that sent it.
  package var idempotencyKey: String?
  /// An `ApprovalReceipt`: Base64 OpenPGP message.
  package var sealedReceipt: String?
  /// After an approval with a custom authenticator: the result of the script.
  package var customInfo: CustomInfo?

  enum CodingKeys: String, CodingKey {
    case state, receipt
    case customInfo = "custom_info"
    case sealedReceipt = "sealed_receipt"
    case expiresInMs = "expires_in_ms"
    case idempotencyKey = "idempotency_key"
  }

  package init(
    state: RequestState, receipt: String? = nil, expiresInMs: Int64? = nil, idempotencyKey: String? = nil,
    sealedReceipt: String? = nil, customInfo: CustomInfo? = nil
  ) {
    self.state = state
    self.receipt = receipt
    self.expiresInMs = expiresInMs
    self.idempotencyKey = idempotencyKey
    self.sealedReceipt = sealedReceipt
    self.customInfo = customInfo
  }
}
