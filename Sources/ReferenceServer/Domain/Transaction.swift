import ReferenceProtocol

/// One mobile authentication transaction: what a portal asked, of whom, and how it ended.
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
  /// Base64url; what the next answer must repeat. A wrong PIN spends it.
  let nonce: String
  /// The exact bytes of the `ApprovalRequest`, as the last fetch sealed them; answers name their hash.
  var request: [UInt8]
  let callbackOnExpiry: Bool
  let createdAtMs: Int64
  let expiresAtMs: Int64
  var state: RequestState = .open
  var reason: NotAuthenticatedReason?
  /// The server's reference for the answer that settled it.
  var receipt: String?
  /// The `Idempotency-Key` of that answer.
  var idempotencyKey: String?
  /// The same for the device, signed.
  var sealedReceipt: String?
  /// PINs judged for it.
  var pinAttempts = 0
  /// SHA-256 of each earlier wording of `request` that a device may hold, 32 bytes each, newest last.
  var formerRequests: [UInt8] = []

  /// The state as it is now: expiry counts from its moment, also before anything wrote it down.
  func state(at nowMs: Int64) -> RequestState { state == .open && nowMs >= expiresAtMs ? .expired : state }

  func timeLeftMs(at nowMs: Int64) -> Int64 { max(0, expiresAtMs - nowMs) }

  func status(at nowMs: Int64) -> RequestStatus {
    let state = state(at: nowMs)
    return RequestStatus(
      state: state, receipt: receipt, expiresInMs: state == .open ? timeLeftMs(at: nowMs) : nil,
      idempotencyKey: idempotencyKey, sealedReceipt: sealedReceipt)
  }
}

/// Why a transaction is finally not authenticated, in the portal's words.
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
    case .invalidRequest: "The enrolment the request was made for no longer exists."
    case .notAccepted: "The user did not accept the request."
    case .invalidAnswer: "The device's answer was not valid."
    case .expired: "Nobody answered in time."
    }
  }
}
