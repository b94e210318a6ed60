// SPDX-License-Identifier: Apache-2.0
import JSONValues

/// The requests of a user that the portal has started, and of which it has not read the end.
struct OpenRequests: Sendable {
  /// The results of the newest requests are read.
  static let mostWatched = 64
  /// The oldest request is forgotten for another one.
  static let mostKept = 4096

  /// In the order of their starts.
  private var transactions: [String] = []

  /// - Returns: false if the request is open already.
  mutating func insert(_ transaction: String) -> Bool {
    guard !contains(transaction) else { return false }
    transactions.append(transaction)
    if transactions.count > Self.mostKept { transactions.removeFirst() }
    return true
  }

  mutating func remove(_ transaction: String) { transactions.removeAll { $0 == transaction } }

  /// Whether the request can be canceled.
  func contains(_ transaction: String) -> Bool { transactions.contains(transaction) }

  /// Whether the result is to be read.
  func isWatched(_ transaction: String) -> Bool { transactions.suffix(Self.mostWatched).contains(transaction) }
}

/// When the portal reads the result of a request: four times a second in the first minute, then more and more rarely,
/// down to once in 5 s.
struct ReadSchedule: Sendable {
  typealias Instant = ContinuousClock.Instant

  static let shortest = Duration.milliseconds(250)
  static let longest = Duration.seconds(5)

  private let began: Instant
  private let end: Instant

  /// - Parameter duration: until the last read.
  init(from began: Instant, for duration: Duration) { (self.began, end) = (began, began + duration) }

  /// The time until the next read.
  /// - Parameters:
  ///   - status: of the answer; nil if there was none.
  ///   - result: as it was answered.
  /// - Returns: nil if nothing else can be read: the result is final, the token server no longer has the request or
  ///   refuses the portal, or the last read was this one.
  func pause(after status: Int?, _ result: JSONValue, now: Instant) -> Duration? {
    let left = end - now
    guard left > .zero, !result.isFinalResult, ![401, 403, 404].contains(status) else { return nil }
    return min(max((now - began) / 240, Self.shortest), Self.longest, left)
  }
}

extension JSONValue {
  /// Whether a portal that reads this result need not read it again.
  fileprivate var isFinalResult: Bool {
    self["is_authenticated"]?.bool == true || self["not_authenticated_reason"].map { $0 != .null } == true
  }
}
