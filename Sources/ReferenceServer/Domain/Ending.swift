import ReferenceProtocol

/// How a transaction may end. Each ending is final; the first one wins.
enum Ending: Sendable, Equatable {
  case accepted
  case denied
  /// Too many answers that were not the device's, or not to this request; or one wrong PIN too many.
  case invalidAnswers
  /// The keys, the push enrolment, the user or the device went away.
  case enrolmentRemoved
  case notDelivered
  case expired
  /// The portal withdrew it.
  case cancelled
  /// A newer request of the same type for the same user took its place.
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

  /// What the portal reads, if anything: someone who withdrew, replaced or merely outwaited a request is told nothing.
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

  /// What the device's `request-closed` event says.
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
