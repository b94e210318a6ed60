import MobileAuth
import Synchronization

/// How long each account's next PIN has to wait: 2ⁿ − 1 seconds after the nth wrong one in a row.
///
/// The count is on the card, the time is not: a wall clock can be set, and a monotonic one begins anew with the
/// machine. So the wait counts from when this process first saw the count, and in full again after a restart, or after
/// another process counted.
final class PINWaits: Sendable {
  private struct Sighting {
    var failures: Int
    var since: Moment
  }

  private let sightings = Mutex<[AccountID: Sighting]>([:])

  /// What is left of the wait; zero or less when it is over.
  func remaining(for account: AccountID, failures: Int, now: Moment) -> Duration {
    let since = sightings.withLock { sightings in
      if let seen = sightings[account], seen.failures == failures, seen.since <= now { return seen.since }
      sightings[account] = Sighting(failures: failures, since: now)
      return now
    }
    return .seconds((1 << min(max(failures, 0), 20)) - 1) - (now - since)
  }
}
