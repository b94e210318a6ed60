// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol

/// Versions of a request's bytes. A request that needs a PIN contains the PIN attempt counts and the next nonce, so a
/// fetch after a wrong PIN returns different bytes. The versions differ in nothing else.
extension Transaction {
  /// The maximum number of versions kept; an answer cannot refer to an older one.
  private static let maxRequestVersions = 16

  /// The version to send now; equal to the last version sent if no count or nonce has changed.
  package func reissued(counts: ProfileFailureCounts?) throws -> Transaction {
    var wording = try JSON.decode(ApprovalRequest.self, from: request)
    wording.nonce = nonce
    wording.attempt = attempts + 1
    wording.state(counts)
    var reissued = self
    reissued.request = JSON.encode(wording)
    if reissued.request != request {
      reissued.formerRequests = (formerRequests + SHA256.hash(request)).suffix(32 * Self.maxRequestVersions)
    }
    return reissued
  }

  /// Whether the device was sent this version of the request. An answer to an earlier version must still contain the
  /// current nonce, which the response to the previous answer delivered.
  package func wasIssued(_ hash: [UInt8]) -> Bool {
    guard hash.count == 32 else { return false }
    if constantTimeEqual(hash, SHA256.hash(request)) { return true }
    return stride(from: 0, to: formerRequests.count, by: 32).contains {
      constantTimeEqual(hash, Array(formerRequests[$0..<($0 + 32)]))
    }
  }
}

extension ApprovalRequest {
  /// Sets the PIN attempt counts.
  package mutating func state(_ counts: ProfileFailureCounts?) {
    maxFailureCount = counts?.maxFailureCount
    previousFailureCount = counts?.previousFailureCount
    remainingFailureCount = counts?.remainingFailureCount
  }
}
