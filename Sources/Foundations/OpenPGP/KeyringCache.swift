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
    /// The number of uses of all keyrings before the last one of this.
    let order: Int
  }

  private struct State {
    /// By the peer's fingerprint. Of several keyrings for one peer, used at the same time, one stays.
    var atRest: [String: AtRest] = [:]
    /// The number of keyrings, also of those in use.
    var count = 0
    var uses = 0
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
      if let found = state.atRest.removeValue(forKey: peer.fingerprint) { return found }
      if state.count >= limit, let oldest = Self.removeOldest(&state) { return oldest }
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
      state.uses += 1
      let used = AtRest(peer: peer, keyring: keyring, order: state.uses)
      let replaced = state.atRest.updateValue(used, forKey: peer.fingerprint)
      let dropped = replaced ?? (state.count > limit ? Self.removeOldest(&state) : nil)
      if dropped != nil { state.count -= 1 }
      return dropped
    }
  }

  private static func removeOldest(_ state: inout State) -> AtRest? {
    guard let oldest = state.atRest.values.min(by: { $0.order < $1.order }) else { return nil }
    return state.atRest.removeValue(forKey: oldest.peer.fingerprint)
  }
}
