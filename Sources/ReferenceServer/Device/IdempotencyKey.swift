import Foundation

/// The value of an `Idempotency-Key` header.
enum IdempotencyKey {
  /// - Returns: the UUID in lower case; nil if it is none.
  static func parse(_ header: String?) -> String? { header.flatMap { UUID(uuidString: $0) }?.uuidString.lowercased() }
}
