// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// The stored response to one `Idempotency-Key`, or to one assertion.
package struct StoredReply: Sendable, Equatable {
  package let requestHash: [UInt8]
  package let status: Int
  package let body: [UInt8]

  package init(requestHash: [UInt8], status: Int, body: [UInt8]) {
    self.requestHash = requestHash
    self.status = status
    self.body = body
  }
}

extension StoredReply {
  /// A success that is stored without its body, because the body contained a secret.
  package static func success(_ requestHash: [UInt8]) -> StoredReply {
    StoredReply(requestHash: requestHash, status: 200, body: [])
  }

  package var isSuccess: Bool { status < 300 }

  package init(_ problem: Problem, to requestHash: [UInt8]) {
    self.init(requestHash: requestHash, status: problem.status, body: JSON.encode(problem))
  }
}
