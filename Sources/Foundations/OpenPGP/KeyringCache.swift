// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A cache of unused keyrings, one per peer, the most recently used last. Loading a keyring takes twice as long as a
/// message, mostly for the check of self-signatures.
///
/// A keyring is removed from the cache while it is used. Messages for one key can therefore be processed in parallel,
/// and a message is verified only with the one certificate that should have signed it.
final class KeyringCache: Sendable {
  /// The maximum number of keyrings, each about 60 KB.
  private static let limit = 4

  private struct AtRest: @unchecked Sendable {
    let peer: OpenPGPCertificate
    /// Not thread-safe, but unused while in the cache, and removed for one user at a time.
    let keyring: Keyring
  }

  private let atRest = Mutex<[AtRest]>([])

  /// Runs `body` with a keyring for the peer. After an error the keyring is not reused.
  func withKeyring<Result>(
    for peer: OpenPGPCertificate, loadedBy load: () throws(OpenPGPError) -> Keyring,
    _ body: (Keyring) throws(OpenPGPError) -> Result
  ) throws(OpenPGPError) -> Result {
    let found = atRest.withLock { atRest in
      atRest.lastIndex { $0.peer == peer }.map { atRest.remove(at: $0) }
    }
    let used = if let found { found } else { AtRest(peer: peer, keyring: try load()) }
    let result = try body(used.keyring)
    atRest.withLock { atRest in
      if atRest.count == Self.limit { atRest.removeFirst() }
      atRest.append(used)
    }
    return result
  }
}
