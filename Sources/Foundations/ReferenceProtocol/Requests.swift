// SPDX-License-Identifier: Apache-2.0
/// `GET /pending`: newest first, equal times by transaction ID. The list can be empty. Entries with a time out of range
/// are dropped when decoding.
public struct PendingList: Codable, Sendable, Equatable {
  /// The query with which a device asks for the message of the newest request, too. Servers that do not know it ignore
  /// it.
  public static let includingMessage = (name: "include", value: "message")
  /// The maximum length of a message in the list, as Base64. A longer one is fetched.
  public static let longestMessage = 65_536

  public var serverTimeMs: Int64
  public var requests: [PendingEntry]

  enum CodingKeys: String, CodingKey {
    case serverTimeMs = "server_time_ms"
    case requests
  }

  public init(serverTimeMs: Int64, requests: [PendingEntry]) {
    self.serverTimeMs = serverTimeMs
    self.requests = requests
  }
}

extension PendingList: ChecksOwnNumbers {
  public init(from decoder: any Decoder) throws {
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

public struct PendingEntry: Codable, Sendable, Equatable {
  public var transactionID: String
  public var profileID: String
  /// The portal's short message, at most 155 characters. Neither secret nor authenticated.
  public var message: String?
  public var typeHint: String?
  public var sentAtMs: Int64
  public var timeToLiveMs: Int64
  public var expiresInMs: Int64
  /// The `message` of `SealedRequest`, as `GET /requests/{tid}/message` would return it now. Optional: in the first
  /// entry of a list with `includingMessage`.
  public var sealedMessage: String?

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

  public init(
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
public struct SealedRequest: Codable, Sendable, Equatable {
  /// Base64 OpenPGP message whose content is an `ApprovalRequest`.
  public var message: String
  public var expiresInMs: Int64

  enum CodingKeys: String, CodingKey {
    case message
    case expiresInMs = "expires_in_ms"
  }

  public init(message: String, expiresInMs: Int64) {
    self.message = message
    self.expiresInMs = expiresInMs
  }
}

/// `POST /requests/{tid}/answers`, with an `Idempotency-Key`.
public struct SealedAnswer: Codable, Sendable, Equatable {
  /// Base64 OpenPGP message whose content is an `ApprovalAnswer`.
  public var answer: String

  public init(answer: String) { self.answer = answer }
}

/// The user's reason for a denial.
public enum DenialReason: String, Codable, Sendable { case declined, canceled = "cancelled", notMe = "not_me" }

/// `POST /requests/{tid}/denials`, with an `Idempotency-Key`: a denial without reading the message first.
public struct Denial: Codable, Sendable, Equatable {
  public var reason: DenialReason
  /// Why the device cannot open the request, for the log; at most 256 bytes.
  public var underlyingError: String?

  enum CodingKeys: String, CodingKey {
    case reason
    case underlyingError = "underlying_error"
  }

  public init(reason: DenialReason, underlyingError: String? = nil) {
    self.reason = reason
    self.underlyingError = underlyingError
  }
}

/// The state of a request on the server. All states except `open` are final.
public enum RequestState: String, Codable, Sendable {
  case open, authenticated, rejected, failed, expired, canceled = "cancelled", superseded
}

/// `200` to an answer or a denial, and `GET /requests/{tid}`.
public struct RequestStatus: Codable, Sendable, Equatable {
  public var state: RequestState
  /// The server's reference for the accepted answer; the same for every repeat.
  public var receipt: String?
  /// Set only while the state is `open`.
  public var expiresInMs: Int64?
  /// The `Idempotency-Key` of the accepted answer; set only for the device that sent it.
  public var idempotencyKey: String?
  /// An `ApprovalReceipt`: Base64 OpenPGP message.
  public var sealedReceipt: String?
  /// After an approval with a custom authenticator: the result of the script.
  public var customInfo: CustomInfo?

  enum CodingKeys: String, CodingKey {
    case state, receipt
    case customInfo = "custom_info"
    case sealedReceipt = "sealed_receipt"
    case expiresInMs = "expires_in_ms"
    case idempotencyKey = "idempotency_key"
  }

  public init(
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
