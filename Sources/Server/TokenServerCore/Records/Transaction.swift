// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// A mobile authentication transaction: the portal's request, its user, and its result.
package struct Transaction: Sendable, Equatable {
  package let id: String
  package let userID: UserID
  package let clientID: ClientID
  package let profileID: ProfileID
  package let type: String
  package let method: ApprovalRequest.Method
  /// The client id of the portal; empty for a transaction of an earlier version.
  package var portal = ""
  package let callbackURI: String
  /// The portal's short message.
  package let message: String?
  /// Base64url; the next answer must contain it. A wrong PIN invalidates it.
  package let nonce: String
  /// The bytes of the `ApprovalRequest` in the version last sent; answers contain its hash.
  package var request: [UInt8]
  package let callbackOnExpiry: Bool
  package let createdAt: Timestamp
  package let expiresAt: Timestamp
  /// The identifier of the authenticator; set if the method needs one.
  package var authenticator: String?
  /// Whether the PIN can be used instead of the authenticator.
  package var hasFallback = false
  /// The method of the last verified attempt; nil before the first.
  package var methodUsed: ApprovalRequest.Method?
  /// The number of attempts with an authenticator other than the PIN that were verified for this transaction.
  package var authenticatorAttempts = 0
  package var state: RequestState = .open
  package var reason: NotAuthenticatedReason?
  /// The server's reference for the answer that ended the transaction.
  package var receipt: String?
  /// The `Idempotency-Key` of that answer.
  package var idempotencyKey: String?
  /// The signed receipt for the device.
  package var sealedReceipt: String?
  /// The number of PIN attempts verified for this transaction.
  package var pinAttempts = 0
  /// When it was first sent to its device in a list, or reported by it; nil before that.
  package var deliveredAt: Timestamp?
  /// SHA-256 of each earlier version of `request` that a device may hold, 32 bytes each, newest last.
  package var formerRequests: [UInt8] = []

  package init(
    id: String, userID: UserID, clientID: ClientID, profileID: ProfileID, type: String, method: ApprovalRequest.Method,
    callbackURI: String, message: String?, nonce: String, request: [UInt8], callbackOnExpiry: Bool,
    createdAt: Timestamp,
    expiresAt: Timestamp, state: RequestState = .open, reason: NotAuthenticatedReason? = nil, receipt: String? = nil,
    idempotencyKey: String? = nil, sealedReceipt: String? = nil, pinAttempts: Int = 0, formerRequests: [UInt8] = []
  ) {
    self.id = id
    self.userID = userID
    self.clientID = clientID
    self.profileID = profileID
    self.type = type
    self.method = method
    self.callbackURI = callbackURI
    self.message = message
    self.nonce = nonce
    self.request = request
    self.callbackOnExpiry = callbackOnExpiry
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.state = state
    self.reason = reason
    self.receipt = receipt
    self.idempotencyKey = idempotencyKey
    self.sealedReceipt = sealedReceipt
    self.pinAttempts = pinAttempts
    self.formerRequests = formerRequests
  }

  /// The number of verified attempts: the next answer's `attempt` is one more.
  package var attempts: Int { pinAttempts + authenticatorAttempts }

  /// The authenticators other than the PIN that can approve the request, the preferred one first.
  package var authenticators: [ApprovalRequest.Alternative] {
    guard authenticator != nil else { return [] }
    return (try? JSON.decode(ApprovalRequest.self, from: request))?.authenticators ?? []
  }

  /// Whether the request contains counts and nonces that change with each attempt.
  package var hasAttempts: Bool { method != .push }

  /// The current state: a request is expired from its expiry time, even if that is not stored yet.
  package func state(at now: Timestamp) -> RequestState { state == .open && now >= expiresAt ? .expired : state }

  package func timeLeft(at now: Timestamp) -> Duration { max(.zero, expiresAt - now) }

  package func status(at now: Timestamp) -> RequestStatus {
    let state = state(at: now)
    return RequestStatus(
      state: state, receipt: receipt, expiresInMs: state == .open ? timeLeft(at: now).milliseconds : nil,
      idempotencyKey: idempotencyKey, sealedReceipt: sealedReceipt)
  }
}

/// Why a transaction finally failed, in the terms of the portal API.
package enum NotAuthenticatedReason: String, Sendable, Codable {
  case failedToSend = "failed_to_send"
  case invalidRequest = "invalid_request"
  case notAccepted = "not_accepted"
  case invalidAnswer = "invalid_answer"
  /// Only for types that call back on expiry.
  case expired

  package var description: String {
    switch self {
    case .failedToSend: "The request could not be delivered to the device."
    case .invalidRequest: "The enrollment the request was made for no longer exists."
    case .notAccepted: "The user did not accept the request."
    case .invalidAnswer: "The device's answer was not valid."
    case .expired: "The request expired without an answer."
    }
  }
}

extension Transaction {
  /// What the device is asked.
  package func content() throws(WireError) -> ApprovalRequest { try JSON.decode(ApprovalRequest.self, from: request) }
}
