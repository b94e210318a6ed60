// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import ReferenceProtocol

extension StoredReply {
  /// - Parameter error: the media type of an error response.
  func response(error: String = "application/problem+json") -> Response {
    guard status >= 300 else { return .json(bytes: body, status: .init(code: status)) }
    return .json(bytes: body, status: .init(code: status), type: error)
  }

  /// The stored response to a repetition of the same request.
  func response(to requestHash: [UInt8]) throws(DeviceAPIError) -> Response {
    guard self.requestHash == requestHash else { throw DeviceAPIError(.idempotencyConflict) }
    return response()
  }

  /// A success that is stored without its body, because the body contained a secret.
  static func success(_ requestHash: [UInt8]) -> StoredReply {
    StoredReply(requestHash: requestHash, status: 200, body: [])
  }

  var isSuccess: Bool { status < 300 }

  init(_ problem: Problem, to requestHash: [UInt8]) {
    self.init(requestHash: requestHash, status: problem.status, body: JSON.encode(problem))
  }
}

extension Problem {
  /// The error for a device about a wrong PIN.
  /// - Returns: nil if the PIN was correct.
  init?(_ finding: PINVerificationOutcome, issuer: String, nonce: String? = nil) {
    switch finding {
    case .right: return nil
    case .wrong(let counts):
      self.init(.pinIncorrect, issuer: issuer)
      self.nonce = nonce
      set(counts)
    case .limitReached(let counts):
      self.init(.userDeregistered, issuer: issuer, detail: "too many wrong PINs")
      set(counts)
    }
  }

  private mutating func set(_ counts: ProfileFailureCounts) {
    maxFailureCount = counts.maxFailureCount
    previousFailureCount = counts.previousFailureCount
    remainingFailureCount = counts.remainingFailureCount
  }
}

extension OAuthError {
  /// - Returns: nil if the PIN was correct.
  init?(_ finding: PINVerificationOutcome) {
    let counts: ProfileFailureCounts
    switch finding {
    case .right: return nil
    case .wrong(let left):
      self.init("invalid_grant", "The PIN is wrong.", code: Problem.Slug.pinIncorrect.code)
      counts = left
    case .limitReached(let all):
      self.init("invalid_grant", "Too many wrong PINs.", code: Problem.Slug.userDeregistered.code)
      counts = all
    }
    maxFailureCount = counts.maxFailureCount
    previousFailureCount = counts.previousFailureCount
    remainingFailureCount = counts.remainingFailureCount
  }
}
