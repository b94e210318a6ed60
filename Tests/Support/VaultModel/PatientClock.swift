// SPDX-License-Identifier: Apache-2.0
public import MobileAuth
import Synchronization
public import Vault

/// A manual clock that is advanced only by the waits of attempts.
public final class PatientClock: TokenClock {
  private let passed = Mutex(Duration.zero)
  public let wallClockMilliseconds: Int64

  public init(wallClockMilliseconds: Int64) { self.wallClockMilliseconds = wallClockMilliseconds }

  public var now: MonotonicInstant { MonotonicInstant(uptime: passed.withLock { $0 }) }

  public func advance(by duration: Duration) { passed.withLock { $0 += duration } }

  public func sleep(until moment: MonotonicInstant) async throws { advance(by: moment - now) }

  /// Retries after the reported wait.
  public func waitOut(
    _ attempt: (PatientClock) throws(StateStoreError) -> PINUnlockResult
  ) throws(StateStoreError) -> PINUnlockResult {
    let verdict = try attempt(self)
    guard case .mustWait(let wait) = verdict else { return verdict }
    advance(by: wait)
    return try attempt(self)
  }
}
