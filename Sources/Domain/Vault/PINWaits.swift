// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Synchronization

/// The delay before each account's next PIN attempt: 2ⁿ − 1 seconds after the nth wrong one in a row.
///
/// The count is stored, the time is not: a wall clock can be set, and a monotonic clock restarts with the machine. The
/// delay starts when this process first reads the count, and starts again after a restart or after another process
/// counted an attempt.
final class PINWaits: Sendable {
  private struct Sighting {
    var failures: Int
    var since: MonotonicInstant
  }

  private let sightings = Mutex<[AccountID: Sighting]>([:])

  /// The remaining delay; zero or less when it is over.
  func remaining(for account: AccountID, failures: Int, now: MonotonicInstant) -> Duration {
    let since = sightings.withLock { sightings in
      if let seen = sightings[account], seen.failures == failures, seen.since <= now { return seen.since }
      sightings[account] = Sighting(failures: failures, since: now)
      return now
    }
    // One type per line: Swift 6.2 finds no operator `-` for the expression in one piece.
    let delay = Duration.seconds((1 << min(max(failures, 0), 20)) - 1)
    let elapsed: Duration = now - since
    return delay - elapsed
  }
}
