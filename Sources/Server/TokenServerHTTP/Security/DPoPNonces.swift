// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import Secrets
import Synchronization

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// Stateless server nonces for DPoP proofs (RFC 9449 §8): the creation time and a MAC over it. The key of a single
/// server lives as long as the process, so that a restart, which loses the replay cache, also invalidates old proofs.
/// Several servers have one key, the time of day, and used proofs in their database.
package final class DPoPNonces: Sendable {
  /// The seconds of the period with the same nonce.
  private static let stepSeconds: Int64 = 30
  /// The number of periods for which a nonce is accepted after its own: at least 4 minutes, at most 4.5.
  private static let acceptedSteps: Int64 = 8

  private struct State {
    var step: Int64 = -1
    var nonce = ""
    var key: SecretBytes
  }

  private let state: Mutex<State>
  private let uptime: @Sendable () -> Duration
  /// The ages of accepted nonces, in periods. The clock of another server may be ahead.
  private let acceptedAges: ClosedRange<Int64>

  /// - Parameter uptime: a monotonic clock.
  init(uptime: @escaping @Sendable () -> Duration = Uptime.now) {
    self.uptime = uptime
    state = Mutex(State(key: Random.secret(32)))
    acceptedAges = 0...Self.acceptedSteps
  }

  /// For several servers.
  /// - Parameter time: since 1970.
  package init(sharedKey: SecretBytes, time: @escaping @Sendable () -> Duration) {
    uptime = time
    state = Mutex(State(key: sharedKey))
    acceptedAges = -1...Self.acceptedSteps
  }

  /// The number of the present period.
  private var step: Int64 { uptime().components.seconds / Self.stepSeconds }

  func current() -> String {
    let step = step
    return state.withLock { state in
      if state.step != step {
        state.step = step
        state.nonce = Self.nonce(step, key: state.key)
      }
      return state.nonce
    }
  }

  func isFresh(_ nonce: String) -> Bool {
    // Most proofs have the current nonce, which is public.
    if nonce.utf8.elementsEqual(current().utf8) { return true }
    guard let bytes = bytes(base64URL: nonce), bytes.count == 8 + 32 else { return false }
    let key = state.withLock { $0.key }
    // Verify the MAC before computing with the bytes.
    guard HMACSHA256.isValid(Array(bytes.dropFirst(8)), for: Array(bytes.prefix(8)), key: key) else { return false }
    let made = Int64(bitPattern: bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    let (age, overflow) = step.subtractingReportingOverflow(made)
    return !overflow && acceptedAges.contains(age)
  }

  /// The nonce of the given period.
  func nonce(ofStep step: Int64) -> String { Self.nonce(step, key: state.withLock { $0.key }) }

  /// Invalidates all nonces; clients get a new one with their next request.
  func forgetAll() {
    state.withLock { state in
      state.key = Random.secret(32)
      state.step = -1
    }
  }

  private static func nonce(_ step: Int64, key: SecretBytes) -> String {
    let time = (0..<8).map { UInt8(truncatingIfNeeded: step >> (56 - 8 * $0)) }
    return (time + HMACSHA256.authenticate(time, key: key)).base64URL
  }
}
