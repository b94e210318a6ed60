// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// How a transaction can end. Each ending is final; the first one wins.
package enum TransactionOutcome: Sendable, Equatable {
  case accepted
  case denied
  /// Too many invalid answers, or the limit of wrong PINs.
  case invalidAnswers
  /// The keys, the push enrollment, the user or the device were removed.
  case enrollmentRemoved
  case notDelivered
  case expired
  /// The portal canceled the request.
  case canceled
  /// A newer request of the same type for the same user replaced it.
  case superseded

  package var state: RequestState {
    switch self {
    case .accepted: .authenticated
    case .denied: .rejected
    case .invalidAnswers, .enrollmentRemoved, .notDelivered: .failed
    case .expired: .expired
    case .canceled: .canceled
    case .superseded: .superseded
    }
  }

  /// The reason for the portal; nil if the portal canceled or replaced the request, or if it does not want to be
  /// notified of expiry.
  package func reason(callbackOnExpiry: Bool) -> NotAuthenticatedReason? {
    switch self {
    case .accepted, .canceled, .superseded: nil
    case .denied: .notAccepted
    case .invalidAnswers: .invalidAnswer
    case .enrollmentRemoved: .invalidRequest
    case .notDelivered: .failedToSend
    case .expired: callbackOnExpiry ? .expired : nil
    }
  }

  package func callsBack(callbackOnExpiry: Bool) -> Bool {
    self == .accepted || reason(callbackOnExpiry: callbackOnExpiry) != nil
  }

  /// The reason in the device's `request-closed` event.
  package var closingReason: DeviceEvent.ClosingReason {
    switch self {
    case .accepted, .denied, .invalidAnswers: .answered
    case .enrollmentRemoved: .revoked
    case .notDelivered, .canceled: .canceled
    case .expired: .expired
    case .superseded: .superseded
    }
  }
}
