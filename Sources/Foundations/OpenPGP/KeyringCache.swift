// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A cache of keyrings, each for one peer, the most recently used last. Loading a peer takes as long as a message, and
/// loading the own key too, mostly for the check of self-signatures. So at the limit a keyring gets another peer.
///
/// A keyring is removed from the cache while it is used. Messages for one key can therefore be processed in parallel,
/// and a message is verified only with the one certificate that should have signed it.
final class KeyringCache: Sendable {
  private struct AtRest: @unchecked Sendable {
    let peer: OpenPGPCertificate
    /// To find the peer among many.
    let mark: Int
    /// Not thread-safe, but unused while in the cache, and removed for one user at a time.
    let keyring: Keyring
  }

  private struct State {
    var atRest: [AtRest] = []
    /// The number of keyrings, also of those in use.
    var count = 0
  }

  private let limit: Int
  private let state = Mutex(State())

  /// - Parameter limit: the maximum number of keyrings, each about 60 KB, while no more are in use at the same time.
  init(limit: Int) { self.limit = limit }

  /// Runs `body` with a keyring for the peer. After an error the keyring is not reused.
  /// - Parameters:
  ///   - time: the present time for librnp, which validates a peer for it when it is loaded.
  ///   - make: makes a keyring without a peer.
  func withKeyring<Result>(
    for peer: OpenPGPCertificate, at time: UInt32, madeBy make: () throws(OpenPGPError) -> Keyring,
    _ body: (Keyring) throws(OpenPGPError) -> Result
  ) throws(OpenPGPError) -> Result {
    let mark = peer.fingerprint.hashValue
    let found = state.withLock { state -> AtRest? in
      if let index = state.atRest.lastIndex(where: { $0.mark == mark && $0.peer == peer }) {
        return state.atRest.remove(at: index)
      }
      if state.count >= limit, !state.atRest.isEmpty { return state.atRest.removeFirst() }
      state.count += 1
      return nil
    }
    do throws(OpenPGPError) {
      let keyring = if let found { found.keyring } else { try make() }
      try keyring.setTime(time)
      if found?.peer != peer {
        if found != nil { try keyring.unloadCertificates() }
        try keyring.load(peer)
      }
      let result = try body(keyring)
      putBack(AtRest(peer: peer, mark: mark, keyring: keyring))
      return result
    } catch {
      state.withLock { $0.count -= 1 }
      throw error
    }
  }

  private func putBack(_ used: AtRest) {
    // What is dropped is freed after the lock.
    _ = state.withLock { state -> AtRest? in
      state.atRest.append(used)
      guard state.count > limit else { return nil }
      state.count -= 1
      return state.atRest.removeFirst()
    }
  }
}
