// SPDX-License-Identifier: Apache-2.0
import Cryptography
import TokenServerCore
import TokenServerStore

/// Remembers identifiers in the database, for all servers that use it. How many of them an owner may use is counted at
/// each server.
struct SharedReplayMemory: ReplayMemory {
  let store: Store
  let clock: ServerClock
  let lifetime: Duration
  /// What was used at this server.
  let own: ReplayCache

  func remember(_ identifier: String, of owner: String) async throws -> ReplayCache.Status {
    switch own.remember(identifier, of: owner) {
    case .new: break
    // The database remembers them.
    case .full: own.forgetAll()
    case .seen: return .seen
    case .tooMany: return .tooMany
    }
    let fingerprint = Array(SHA256.hash(Array("\(owner) \(identifier)".utf8)).prefix(16))
    let end = clock.now() + lifetime
    // After a failure of the database a proof may count as used although its request was refused. A device that repeats
    // the request makes a new proof.
    return try await store.writeStatement { try $0.use(fingerprint, until: end) } ? .new : .seen
  }

  /// Never called: this memory is never full.
  func forgetAll() {}
}
