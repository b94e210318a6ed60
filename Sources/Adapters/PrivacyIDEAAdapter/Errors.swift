// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import ServerBackends

extension TokenServerError {
  /// The fault for an error response to an answer. HTTP status and error code decide; the text is only logged.
  init(answering response: HTTPResponse) {
    guard response.status < 500, case .error(let status, let code, let message)? = Reply(response) else {
      self.init(unexplained: response)
      return
    }
    self =
      switch (status, code) {
      case (404, _): .requestNotFound
      case (403, _): .refused(message)
      default: .answerInvalid("\(message) (\(code))")
      }
  }

  /// The fault for an error response to the enrollment.
  init(enrolling response: HTTPResponse) {
    guard response.status < 500, case .error(let status, let code, let message)? = Reply(response) else {
      self.init(unexplained: response)
      return
    }
    self =
      switch (status, code) {
      case (404, _):
        .alreadyEnrolled(
          "the token server expects no enrollment of this token: it is deleted, or enrolled, perhaps by an attempt whose "
            + "response was lost; ask for a new enrollment URL, after the administrator has deleted the token")
      case (403, _): .enrollmentDisabled(message)
      case (400, Reply.Code.parameter), (400, Reply.Code.hidden):
        .refused("the enrollment URL is wrong or no longer valid: \(message)")
      default: .refused("\(message) (\(code))")
      }
  }
}

/// The reason why a poll returned no list, concerning one token.
enum PollError: Error, Equatable, Sendable {
  /// No response from the token server itself: poll again later.
  case offline(TokenServerError)
  /// The server does not accept the time stamp sent, or it could be so: the difference to the server's clock, nil if
  /// unknown.
  case clock(Duration?)
  /// The token was deleted, or enrolled on another device, or no enabled policy has the address for answers: the server
  /// has one error for all.
  case notKnown
  /// Polling is disabled, for all tokens or for this one.
  case forbidden(String)
  /// The URL is wrong, or the server is not the expected one.
  case misplaced(String)

  /// The server has one code for a wrong time stamp and for a wrong signature. Which of them it was decides the
  /// difference of the clocks, or the text, which servers translate or hide. In doubt it was the time stamp.
  /// - Parameter drift: the difference between the time stamp sent and the server's clock; nil if unknown.
  init(_ response: HTTPResponse, drift: Duration?) {
    guard response.status < 500, case .error(let status, let code, let message)? = Reply(response) else {
      self = .offline(TokenServerError(unexplained: response))
      return
    }
    self =
      switch (status, code) {
      case (400, Reply.Code.signatureOrTime), (400, Reply.Code.hidden):
        if let drift, drift <= ResponseClock.tolerance {
          message.contains("not in valid range") ? .clock(nil) : .notKnown
        } else {
          .clock(drift)
        }
      case (403, _): .forbidden(message)
      default: .misplaced("\(message) (\(code))")
      }
  }
}

extension PollError: CustomStringConvertible {
  var description: String {
    if case .offline(let fault) = self { fault.description } else { explanation }
  }

  /// The description without a number.
  var explanation: String {
    switch self {
    case .offline(let fault): fault.explanation
    case .clock(let drift?): "this board's clock and the token server's are \(drift.components.seconds) s apart"
    case .clock(nil):
      "the token server does not accept the time of this board's requests: set the clocks of the board and of the server"
    case .notKnown:
      "the token server does not know this token, another device has been enrolled for it, or the token server has no "
        + "policy push_registration_url"
    case .forbidden(let message): "the token server does not allow polling: \(message)"
    case .misplaced(let message): "this is not a push endpoint: \(message)"
    }
  }
}
