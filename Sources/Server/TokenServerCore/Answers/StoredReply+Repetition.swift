// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

extension StoredReply {
  /// The stored response to a repetition of the same request.
  package func repeated(for requestHash: [UInt8]) throws(DeviceAPIError) -> StoredReply {
    guard self.requestHash == requestHash else { throw DeviceAPIError(.idempotencyConflict) }
    return self
  }
}
