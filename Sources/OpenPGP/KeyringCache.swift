import Synchronization

/// Keyrings at rest, one peer each, the most recently used last. Loading one costs twice what a message does, most of
/// it in checking self-signatures.
///
/// Whoever takes a keyring is alone with it, so messages of one key are sealed and opened side by side, and a message
/// is only ever held against the one certificate it should be signed with.
final class KeyringCache: Sendable {
  /// Some 60 KB each.
  private static let limit = 4

  private struct AtRest: @unchecked Sendable {
    let peer: OpenPGPCertificate
    /// Not thread-safe, but in here nobody uses it, and it leaves for one user at a time.
    let keyring: Keyring
  }

  private let atRest = Mutex<[AtRest]>([])

  /// A keyring that was in use when something was refused is not used again.
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
