// SPDX-License-Identifier: Apache-2.0
import CoreMetrics
import Synchronization

extension PrometheusRegistry {
  /// A number that only grows; at its maximum it stays.
  final class Counter: CounterHandler {
    private let total = Mutex<Int64>(0)

    var value: Int64 { total.withLock { $0 } }

    func increment(by amount: Int64) {
      total.withLock { total in
        let (sum, isOverflow) = total.addingReportingOverflow(max(0, amount))
        total = isOverflow ? .max : sum
      }
    }

    func reset() { total.withLock { $0 = 0 } }
  }

  /// The latest value of something that grows and shrinks.
  final class Gauge: MeterHandler, RecorderHandler {
    private let latest = Mutex(0.0)

    var value: Double { latest.withLock { $0 } }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { latest.withLock { $0 = value } }
    func increment(by amount: Double) { latest.withLock { $0 += amount } }
    func decrement(by amount: Double) { latest.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }
  }

  /// The distribution of durations, in seconds.
  final class Histogram: TimerHandler, RecorderHandler {
    struct Values {
      /// For each bound, the number of values that are not greater; not cumulative. The last is for all greater values.
      var counts = [Int64](repeating: 0, count: bounds.count + 1)
      var sum = 0.0
    }

    /// The upper bounds of the buckets. The last are for the time that a person takes to answer.
    static let bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

    private let stored = Mutex(Values())

    var values: Values { stored.withLock { $0 } }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
      let bucket = Self.bounds.firstIndex { value <= $0 } ?? Self.bounds.count
      stored.withLock { values in
        values.counts[bucket] += 1
        values.sum += value
      }
    }
  }
}
