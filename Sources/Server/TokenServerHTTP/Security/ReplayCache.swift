// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Synchronization
import TokenServerCore

/// Remembers the identifiers of proofs or assertions that were used.
protocol ReplayMemory: Sendable {
  /// - Parameter owner: the owner of the identifier; two owners may use the same identifier.
  func remember(_ identifier: String, of owner: String) async throws -> ReplayCache.Status
  func forgetAll()
}

/// Remembers proof identifiers for at least `lifetime`, in bounded memory: two generations; the older one is dropped
/// as a whole. The number per owner is limited, so that one owner cannot use up the capacity.
final class ReplayCache: ReplayMemory {
  enum Status: Equatable, Sendable {
    case new
    case seen
    /// The owner has used its share: the caller must refuse the request for now.
    case tooMany
    /// The capacity is used up: the caller must invalidate all older proofs and start again.
    case full
  }

  private struct State {
    var current: Set<Fingerprint> = []
    var previous: Set<Fingerprint> = []
    /// The number of identifiers in `current`, by owner.
    var owners: [String: Int] = [:]
    var currentSince: Duration
  }

  /// The first half of a SHA-256: 16 bytes instead of a string of any length.
  private struct Fingerprint: Hashable {
    let high: UInt64
    let low: UInt64

    init(_ text: String) {
      let digest = SHA256.hash(Array(text.utf8))
      high = digest[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
      low = digest[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }
  }

  private let lifetime: Duration
  private let capacity: Int
  private let share: Int
  private let reserve: Int
  private let reservedShare: Int
  private let uptime: @Sendable () -> Duration
  private let state: Mutex<State>

  /// - Parameters:
  ///   - capacity: identifiers per generation.
  ///   - share: identifiers of one owner per generation.
  ///   - reserve: identifiers per generation beyond the capacity, for owners with fewer than `reservedShare`: a few
  ///     owners that use their whole share must not lock out the others.
  init(
    lifetime: Duration, capacity: Int, share: Int, reserve: Int = 0, reservedShare: Int = 0,
    uptime: @escaping @Sendable () -> Duration = Uptime.now
  ) {
    self.lifetime = lifetime
    self.capacity = capacity
    self.share = share
    self.reserve = reserve
    self.reservedShare = reservedShare
    self.uptime = uptime
    state = Mutex(State(currentSince: uptime()))
  }

  func remember(_ identifier: String, of owner: String) -> Status {
    let fingerprint = Fingerprint("\(owner) \(identifier)")
    let now = uptime()
    return state.withLock { state in
      if now - state.currentSince >= lifetime {
        state.previous = now - state.currentSince >= lifetime * 2 ? [] : state.current
        state.current = []
        state.owners = [:]
        state.currentSince = now
      }
      if state.current.contains(fingerprint) || state.previous.contains(fingerprint) { return .seen }
      let own = state.owners[owner, default: 0]
      guard own < share else { return .tooMany }
      guard state.current.count < (own < reservedShare ? capacity + reserve : capacity) else { return .full }
      state.current.insert(fingerprint)
      state.owners[owner, default: 0] += 1
      return .new
    }
  }

  func forgetAll() {
    state.withLock { state in
      state.current = []
      state.previous = []
      state.owners = [:]
    }
  }
}
