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
      case (404, _): .alreadyEnrolled("the token server expects no enrollment: the token is enrolled or deleted")
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
  /// The difference between the token server's clock and the time stamp sent.
  case clock(Duration)
  /// The server does not accept the token's signature: the token was deleted, or enrolled on another device.
  case notKnown
  /// Polling is disabled, for all tokens or for this one.
  case forbidden(String)
  /// The URL is wrong, or the server is not the expected one.
  case misplaced(String)

  /// - Parameter drift: the difference between the time stamp sent and the server's clock; nil if unknown.
  init(_ response: HTTPResponse, drift: Duration?) {
    guard response.status < 500, case .error(let status, let code, let message)? = Reply(response) else {
      self = .offline(TokenServerError(unexplained: response))
      return
    }
    self =
      switch (status, code) {
      case (400, Reply.Code.signatureOrTime), (400, Reply.Code.hidden):
        if let drift, drift > DateHeaderClock.tolerance { .clock(drift) } else { .notKnown }
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
    case .clock(let drift): "this board's clock and the token server's are \(drift.components.seconds) s apart"
    case .notKnown: "the token server does not know this token, or another device has been enrolled for it"
    case .forbidden(let message): "the token server does not allow polling: \(message)"
    case .misplaced(let message): "this is not a push endpoint: \(message)"
    }
  }
}
