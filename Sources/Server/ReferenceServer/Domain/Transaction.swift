// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// A mobile authentication transaction: the portal's request, its user, and its result.
struct Transaction: Sendable, Equatable {
  let id: String
  let userID: String
  let clientID: String
  let profileID: String
  let type: String
  let method: ApprovalRequest.Method
  let callbackURI: String
  /// The portal's short message.
  let message: String?
  /// Base64url; the next answer must contain it. A wrong PIN invalidates it.
  let nonce: String
  /// The bytes of the `ApprovalRequest` in the version last sent; answers contain its hash.
  var request: [UInt8]
  let callbackOnExpiry: Bool
  let createdAtMs: Int64
  let expiresAtMs: Int64
  var state: RequestState = .open
  var reason: NotAuthenticatedReason?
  /// The server's reference for the answer that ended the transaction.
  var receipt: String?
  /// The `Idempotency-Key` of that answer.
  var idempotencyKey: String?
  /// The signed receipt for the device.
  var sealedReceipt: String?
  /// The number of PIN attempts verified for this transaction.
  var pinAttempts = 0
  /// SHA-256 of each earlier version of `request` that a device may hold, 32 bytes each, newest last.
  var formerRequests: [UInt8] = []

  /// The current state: a request is expired from its expiry time, even if that is not stored yet.
  func state(at nowMs: Int64) -> RequestState { state == .open && nowMs >= expiresAtMs ? .expired : state }

  func timeLeftMs(at nowMs: Int64) -> Int64 { max(0, expiresAtMs - nowMs) }

  func status(at nowMs: Int64) -> RequestStatus {
    let state = state(at: nowMs)
    return RequestStatus(
      state: state, receipt: receipt, expiresInMs: state == .open ? timeLeftMs(at: nowMs) : nil,
      idempotencyKey: idempotencyKey, sealedReceipt: sealedReceipt)
  }
}

/// Why a transaction finally failed, in the terms of the portal API.
enum NotAuthenticatedReason: String, Sendable, Codable {
  case failedToSend = "failed_to_send"
  case invalidRequest = "invalid_request"
  case notAccepted = "not_accepted"
  case invalidAnswer = "invalid_answer"
  /// Only for types that call back on expiry.
  case expired

  var description: String {
    switch self {
    case .failedToSend: "The request could not be delivered to the device."
    case .invalidRequest: "The enrollment the request was made for no longer exists."
    case .notAccepted: "The user did not accept the request."
    case .invalidAnswer: "The device's answer was not valid."
    case .expired: "The request expired without an answer."
    }
  }
}
