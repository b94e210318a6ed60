import Cryptography
import Secrets
import Synchronization

/// Server nonces for DPoP proofs (RFC 9449 §8), without storing any: the time they were made, and a tag over it. The
/// key lives as long as the process, so that a restart, which forgets seen proofs, also makes old proofs stale.
final class DPoPNonces: Sendable {
  /// Nonces are the same for this many milliseconds.
  private static let stepMs: Int64 = 30_000
  /// Accepted for so many steps after their own: at least 4 minutes, at most 4.5.
  private static let acceptedSteps: Int64 = 8

  private struct State {
    var step: Int64 = -1
    var nonce = ""
    var key = Random.secret(32)
  }

  private let state = Mutex(State())
  private let uptimeMs: @Sendable () -> Int64

  /// - Parameter uptimeMs: a clock that is never set back.
  init(uptimeMs: @escaping @Sendable () -> Int64 = Uptime.nowMs) { self.uptimeMs = uptimeMs }

  func current() -> String {
    let step = uptimeMs() / Self.stepMs
    return state.withLock { state in
      if state.step != step {
        state.step = step
        state.nonce = Self.nonce(step, key: state.key)
      }
      return state.nonce
    }
  }

  func isFresh(_ nonce: String) -> Bool {
    guard let bytes = bytes(base64URL: nonce), bytes.count == 8 + 32 else { return false }
    let key = state.withLock { $0.key }
    // Nothing is computed from bytes that this server has not made.
    guard HMACSHA256.isValid(Array(bytes.dropFirst(8)), for: Array(bytes.prefix(8)), key: key) else { return false }
    let step = Int64(bitPattern: bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    let (age, overflow) = (uptimeMs() / Self.stepMs).subtractingReportingOverflow(step)
    return !overflow && (0...Self.acceptedSteps).contains(age)
  }

  /// The nonce of one step, whichever it is.
  func nonce(ofStep step: Int64) -> String { Self.nonce(step, key: state.withLock { $0.key }) }

  /// Makes every nonce given so far stale; clients simply ask again.
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
