// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The value of an `Idempotency-Key` header.
enum IdempotencyKey {
  /// - Returns: the UUID in lower case; nil if the value is not a UUID.
  static func parse(_ header: String?) -> String? { header.flatMap { UUID(uuidString: $0) }?.uuidString.lowercased() }
}
