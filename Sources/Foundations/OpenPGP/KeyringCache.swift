// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A cache of keyrings, each for one peer. Loading a peer takes longer than sealing a message, and loading the own key
/// as long, mostly for the check of self-signatures. So at the limit the keyring that was unused for longest gets
/// another peer.
///
/// A keyring is removed from the cache while it is used. Messages for different peers can therefore be processed in
/// parallel, and a message is verified only with the one certificate that should have signed it.
final class KeyringCache: Sendable {
  private struct AtRest: @unchecked Sendable {
    let peer: OpenPGPCertificate
    /// Not thread-safe, but unused while in the cache, and removed for one user at a time.
    let keyring: Keyring
  }

  /// The unused keyrings in the order of their last use.
  private struct State {
    private var atRest: [Int: AtRest] = [:]
    /// By the peer's fingerprint. Of several keyrings for one peer, used at the same time, one stays.
    private var numbers: [String: Int] = [:]
    private var next = 0
    /// The number of keyrings, also of those in use.
    var count = 0

    mutating func remove(for peer: String) -> AtRest? { numbers[peer].flatMap { take($0) } }

    /// Looks at all numbers: far faster than the loading of the keyring's new peer, which follows.
    mutating func removeOldest() -> AtRest? { atRest.keys.min().flatMap { take($0) } }

    /// Requires that there is none for this peer.
    mutating func insert(_ keyring: AtRest) {
      atRest[next] = keyring
      numbers[keyring.peer.fingerprint] = next
      next += 1
    }

    private mutating func take(_ number: Int) -> AtRest? {
      guard let taken = atRest.removeValue(forKey: number) else { return nil }
      numbers[taken.peer.fingerprint] = nil
      return taken
    }
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
    let found = state.withLock { state -> AtRest? in
      if let found = state.remove(for: peer.fingerprint) { return found }
      if state.count >= limit, let oldest = state.removeOldest() { return oldest }
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
      putBack(keyring, for: peer)
      return result
    } catch {
      state.withLock { $0.count -= 1 }
      throw error
    }
  }

  private func putBack(_ keyring: Keyring, for peer: OpenPGPCertificate) {
    // What is dropped is freed after the lock.
    _ = state.withLock { state -> AtRest? in
      var dropped = state.remove(for: peer.fingerprint)
      state.insert(AtRest(peer: peer, keyring: keyring))
      if dropped == nil, state.count > limit { dropped = state.removeOldest() }
      if dropped != nil { state.count -= 1 }
      return dropped
    }
  }
}
