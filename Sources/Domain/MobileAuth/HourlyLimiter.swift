// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Limits how often something happens in an hour, for each of several subjects, such as the lines that one token server
/// can cause in a log.
package final class HourlyLimiter<Subject: Hashable & Sendable>: Sendable {
  package enum Grant: Sendable, Equatable {
    /// - Parameter omitted: how many were omitted in the subject's hour before; 0 except at the first of an hour.
    case allowed(omitted: Int)
    /// The first one above the limit.
    case limitReached
    case omitted
  }

  private struct Hour {
    let beginning: MonotonicInstant
    var count = 0

    func isOver(at now: MonotonicInstant) -> Bool { now - beginning >= .seconds(3600) }
  }

  private let limit: Int
  private let hours = Mutex<[Subject: Hour]>([:])

  /// - Parameter limit: the number of times that is allowed in an hour, which begins with the first time.
  package init(limit: Int) { self.limit = limit }

  package func take(_ subject: Subject, at now: MonotonicInstant) -> Grant {
    hours.withLock { hours in
      var hour = hours[subject] ?? Hour(beginning: now)
      var omitted = 0
      if hour.isOver(at: now) {
        omitted = max(0, hour.count - limit)
        hour = Hour(beginning: now)
      }
      // Subjects may come and go.
      if hour.count == 0 { hours = hours.filter { !$0.value.isOver(at: now) || $0.value.count > limit } }
      hour.count += 1
      hours[subject] = hour
      if hour.count <= limit { return .allowed(omitted: omitted) }
      return hour.count == limit + 1 ? .limitReached : .omitted
    }
  }
}
