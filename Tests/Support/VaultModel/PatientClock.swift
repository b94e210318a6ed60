// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
package import MobileAuth
import Synchronization
import Vault

/// A manual clock that is advanced only by the waits of attempts.
package final class PatientClock: TokenClock {
  private let passed = Mutex(Duration.zero)
  package let wallClockMilliseconds: Int64

  package init(wallClockMilliseconds: Int64) { self.wallClockMilliseconds = wallClockMilliseconds }

  package var now: MonotonicInstant { MonotonicInstant(uptime: passed.withLock { $0 }) }

  package func advance(by duration: Duration) { passed.withLock { $0 += duration } }

  package func sleep(until moment: MonotonicInstant) async throws { advance(by: moment - now) }

  package var environment: TokenEnvironment { .test(self) }

  /// Retries after the reported wait.
  package func waitOut(
    _ attempt: (TokenEnvironment) throws(StateStoreError) -> PINUnlockResult
  ) throws(StateStoreError) -> PINUnlockResult {
    let result = try attempt(environment)
    guard case .mustWait(let wait) = result else { return result }
    advance(by: wait)
    return try attempt(environment)
  }
}
