// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A cache of unused keyrings, one per peer, the most recently used last. Loading a peer takes as long as a message,
/// and loading the own key too, mostly for the check of self-signatures. So at the limit a keyring gets another peer.
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

  private let limit: Int
  private let atRest = Mutex<[AtRest]>([])

  /// - Parameter limit: the maximum number of keyrings, each about 60 KB.
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
    let found = atRest.withLock { atRest -> AtRest? in
      if let index = atRest.lastIndex(where: { $0.mark == mark && $0.peer == peer }) { return atRest.remove(at: index) }
      return atRest.count < limit ? nil : atRest.removeFirst()
    }
    let keyring = if let found { found.keyring } else { try make() }
    try keyring.setTime(time)
    if found?.peer != peer {
      if let found { try keyring.unload(found.peer) }
      try keyring.load(peer)
    }
    let result = try body(keyring)
    atRest.withLock { atRest in
      if atRest.count >= limit { atRest.removeFirst() }
      atRest.append(AtRest(peer: peer, mark: mark, keyring: keyring))
    }
    return result
  }
}
