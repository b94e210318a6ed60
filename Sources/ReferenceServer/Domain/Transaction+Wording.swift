import Cryptography
import ReferenceProtocol

/// A request that needs a PIN tells how the PIN stands and which nonce is next, so a fetch after a wrong PIN has other
/// bytes than the one before. The wordings differ in nothing else.
extension Transaction {
  /// More than this a device cannot have fetched and still mean.
  private static let wordingsKept = 16

  /// As it is to be sealed now; equal to what was sealed last if nothing has changed.
  func reworded(counts: ProfileFailureCounts) throws -> Transaction {
    var wording = try JSON.decode(ApprovalRequest.self, from: request)
    wording.nonce = nonce
    wording.attempt = pinAttempts + 1
    wording.state(counts)
    var reworded = self
    reworded.request = JSON.encode(wording)
    if reworded.request != request {
      reworded.formerRequests = (formerRequests + SHA256.hash(request)).suffix(32 * Self.wordingsKept)
    }
    return reworded
  }

  /// Whether a device was given these bytes as this request. An answer to an earlier wording still repeats the current
  /// nonce, which the answer to its predecessor brought.
  func wasWorded(_ hash: [UInt8]) -> Bool {
    guard hash.count == 32 else { return false }
    if constantTimeEqual(hash, SHA256.hash(request)) { return true }
    return stride(from: 0, to: formerRequests.count, by: 32).contains {
      constantTimeEqual(hash, Array(formerRequests[$0..<($0 + 32)]))
    }
  }
}

extension ApprovalRequest {
  /// How the PIN stands.
  mutating func state(_ counts: ProfileFailureCounts?) {
    maxFailureCount = counts?.maxFailureCount
    previousFailureCount = counts?.previousFailureCount
    remainingFailureCount = counts?.remainingFailureCount
  }
}
