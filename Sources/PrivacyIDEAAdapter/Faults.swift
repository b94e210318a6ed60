import Courier
import MobileAuth

extension TokenServerFault {
  init(_ error: CourierError) {
    self = if case .untrusted = error { .untrusted(error.description) } else { .unreachable(error.description) }
  }

  /// An answer that is not the token server's own, or that says that it is broken.
  static func unexplained(_ response: HTTPResponse) -> TokenServerFault {
    guard response.status == 429 else {
      return .unreachable("status \(response.status) without an explanation we understand")
    }
    let seconds = response.headers["Retry-After"].flatMap { Int64($0) }.flatMap { $0 >= 0 ? min($0, 86_400) : nil }
    return .rateLimited(retryAfter: seconds.map { .seconds($0) })
  }

  /// What an error answer to an answer means: HTTP status and code decide, the text is only for the log.
  init(answering response: HTTPResponse) {
    guard response.status < 500, case .error(let status, let code, let message)? = Reply(response) else {
      self = Self.unexplained(response)
      return
    }
    self =
      switch (status, code) {
      case (404, _): .requestNotFound
      case (403, _): .refused(message)
      default: .answerInvalid("\(message) (\(code))")
      }
  }

  /// What an error answer to the enrolment means.
  init(enrolling response: HTTPResponse) {
    guard response.status < 500, case .error(let status, let code, let message)? = Reply(response) else {
      self = Self.unexplained(response)
      return
    }
    self =
      switch (status, code) {
      case (404, _): .alreadyEnrolled("the token server does not wait for this token: it is enrolled, or gone")
      case (403, _): .enrolmentDisabled(message)
      case (400, Reply.Code.parameter), (400, Reply.Code.hidden):
        .refused("the enrolment URL is not, or no longer, the right one: \(message)")
      default: .refused("\(message) (\(code))")
      }
  }
}

/// Why a poll gave no list, as far as it concerns one token alone.
enum PollFault: Error, Equatable, Sendable {
  /// Nothing was heard from the token server itself: later.
  case offline(TokenServerFault)
  /// The token server's clock and the stamp we sent are this far apart.
  case clock(Duration)
  /// The signature is not that of the token it knows by this name: deleted, or enrolled elsewhere.
  case notKnown
  /// Polling is switched off, for everybody or for this token.
  case forbidden(String)
  /// The address is wrong, or this server is not what we think.
  case misplaced(String)

  /// - Parameter drift: between the stamp sent and the server's clock, where it told.
  init(_ response: HTTPResponse, drift: Duration?) {
    guard response.status < 500, case .error(let status, let code, let message)? = Reply(response) else {
      self = .offline(.unexplained(response))
      return
    }
    self =
      switch (status, code) {
      case (400, Reply.Code.signatureOrTime), (400, Reply.Code.hidden):
        if let drift, drift > ServerClock.tolerance { .clock(drift) } else { .notKnown }
      case (403, _): .forbidden(message)
      default: .misplaced("\(message) (\(code))")
      }
  }
}

extension PollFault: CustomStringConvertible {
  var description: String {
    switch self {
    case .offline(let fault): "\(fault)"
    case .clock(let drift): "this board's clock and the token server's are \(drift.components.seconds) s apart"
    case .notKnown: "the token server does not know this token, or another device has been enrolled for it"
    case .forbidden(let message): "the token server does not allow polling: \(message)"
    case .misplaced(let message): "this is not a push endpoint: \(message)"
    }
  }
}
