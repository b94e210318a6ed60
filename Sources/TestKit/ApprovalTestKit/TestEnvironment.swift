// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Synchronization

extension TokenEnvironment {
  /// The environment of a test.
  ///
  /// Its UUIDs are `numberedUUID(1)`, `numberedUUID(2)` and so on.
  /// - Parameters:
  ///   - clock: usually a `ManualClock`.
  ///   - seed: of the random numbers. Without a seed each is 0.5, the middle of every jitter, so that a test can state
  ///     how long a pause is.
  ///   - events: records what is reported; nil for nothing.
  package static func test(
    _ clock: any TokenClock, seed: UInt64? = nil, recordingIn events: RecordedEvents? = nil
  ) -> TokenEnvironment {
    let numbers = TestNumbers(seed)
    return TokenEnvironment(
      clock: clock, random: { numbers.fraction() }, makeUUID: { numbers.uuid() }, report: { events?.add($0) })
  }

  private final class TestNumbers: Sendable {
    private let generator: Mutex<SeededGenerator?>
    private let count = Mutex(0)

    init(_ seed: UInt64?) { generator = Mutex(seed.map { SeededGenerator(seed: $0) }) }

    func fraction() -> Double {
      generator.withLock { generator in
        guard var next = generator else { return 0.5 }
        defer { generator = next }
        return Double.random(in: 0..<1, using: &next)
      }
    }

    func uuid() -> String {
      count.withLock { count in
        count += 1
        return numberedUUID(count)
      }
    }
  }
}

/// A version 4 UUID that ends in the decimal number.
/// - Parameter number: 0 to 999,999,999,999.
package func numberedUUID(_ number: Int) -> String {
  let digits = String(number)
  return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
}

/// The events that were reported, in order.
package final class RecordedEvents: Sendable {
  private let list = Mutex<[TokenEvent]>([])

  package init() {}

  package func add(_ event: TokenEvent) { list.withLock { $0.append(event) } }
  package var all: [TokenEvent] { list.withLock { $0 } }
  /// Each event as it is logged.
  package var texts: [String] { all.map(\.description) }
  /// The troubles of accounts, without the accounts.
  package var troubles: [String] {
    all.compactMap { if case .trouble(_, let what) = $0 { what } else { nil } }
  }
}
