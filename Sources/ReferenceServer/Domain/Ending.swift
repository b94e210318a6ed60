// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// How a transaction can end. Each ending is final; the first one wins.
enum Ending: Sendable, Equatable {
  case accepted
  case denied
  /// Too many invalid answers, or the limit of wrong PINs.
  case invalidAnswers
  /// The keys, the push enrollment, the user or the device were removed.
  case enrolmentRemoved
  case notDelivered
  case expired
  /// The portal canceled the request.
  case cancelled
  /// A newer request of the same type for the same user replaced it.
  case superseded

  var state: RequestState {
    switch self {
    case .accepted: .authenticated
    case .denied: .rejected
    case .invalidAnswers, .enrolmentRemoved, .notDelivered: .failed
    case .expired: .expired
    case .cancelled: .cancelled
    case .superseded: .superseded
    }
  }

  /// The reason for the portal; nil if the portal canceled or replaced the request, or if it does not want to be
  /// notified of expiry.
  func reason(callbackOnExpiry: Bool) -> NotAuthenticatedReason? {
    switch self {
    case .accepted, .cancelled, .superseded: nil
    case .denied: .notAccepted
    case .invalidAnswers: .invalidAnswer
    case .enrolmentRemoved: .invalidRequest
    case .notDelivered: .failedToSend
    case .expired: callbackOnExpiry ? .expired : nil
    }
  }

  func callsBack(callbackOnExpiry: Bool) -> Bool {
    self == .accepted || reason(callbackOnExpiry: callbackOnExpiry) != nil
  }

  /// The reason in the device's `request-closed` event.
  var closingReason: DeviceEvent.ClosingReason {
    switch self {
    case .accepted, .denied, .invalidAnswers: .answered
    case .enrolmentRemoved: .revoked
    case .notDelivered, .cancelled: .cancelled
    case .expired: .expired
    case .superseded: .superseded
    }
  }
}
