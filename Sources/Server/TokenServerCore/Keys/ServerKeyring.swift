// SPDX-License-Identifier: Apache-2.0
package import OpenPGP
import Synchronization

/// The server's OpenPGP keys: one for all enrollments, or one for each (`unique_server_keys`). They are stored
/// encrypted with a key derived from the pepper, and cached in parsed form, because parsing is slower than using them.
package final class ServerKeyring: Sendable {
  /// The maximum number of parsed keys and certificates in memory, each.
  private static let capacity = 10_000

  private let store: any RecordStore
  private let hasher: KeyedHasher
  private let keys = Mutex<[String: OpenPGPKey]>([:])
  private let certificates = Mutex<[String: OpenPGPCertificate]>([:])
  /// For each pair of a server key and a certificate; an entry takes about 60 KB.
  private let correspondences = RecentValues<String, OpenPGPKey>(capacity: 500)

  package init(store: any RecordStore, hasher: KeyedHasher) {
    self.store = store
    self.hasher = hasher
  }

  package struct CorruptKeyError: Error {}

  /// The key for all enrollments, created at the first call.
  package func shared() async throws -> OpenPGPKey {
    if let fingerprint = try await store.read({ try $0.sharedServerKey() }) { return try await key(fingerprint) }
    return try await make(isShared: true)
  }

  package func make(isShared: Bool = false) async throws -> OpenPGPKey {
    let key = try OpenPGPKey.generate(userID: "Approval Token server")
    let fingerprint = key.certificate.fingerprint
    let box = try hasher.seal(key.secret, of: fingerprint)
    try await store.write { try $0.insertServerKey(fingerprint, sealedSecret: box, isShared: isShared) }
    cache(key, as: fingerprint)
    return key
  }

  package func key(_ fingerprint: String) async throws -> OpenPGPKey {
    if let key = keys.withLock({ $0[fingerprint] }) { return key }
    guard let box = try await store.read({ try $0.sealedServerKey(fingerprint) }) else { throw CorruptKeyError() }
    let key = try OpenPGPKey(secret: try hasher.open(box, of: fingerprint))
    cache(key, as: fingerprint)
    return key
  }

  /// The profile's server key in a separate instance. librnp needs the two certificates of a message exchange loaded,
  /// an `OpenPGPKey` keeps only a few loaded, and loading takes three times as long as a message.
  /// - Returns: nil for a profile without keys.
  package func correspondence(of profile: Profile) async throws -> (key: OpenPGPKey, certificate: OpenPGPCertificate)? {
    guard let serverKey = profile.serverKey, let certificate = try certificate(of: profile) else { return nil }
    let name = "\(serverKey)/\(certificate.fingerprint)"
    if let key = correspondences[name] { return (key, certificate) }
    let key = try await key(serverKey).forOtherPeers()
    correspondences.insert(key, for: name)
    return (key, certificate)
  }

  /// A device's certificate, as stored at its enrollment.
  package func certificate(of profile: Profile) throws -> OpenPGPCertificate? {
    guard let bytes = profile.certificate, let fingerprint = profile.certificateFingerprint else { return nil }
    if let known = certificates.withLock({ $0[fingerprint] }), known.bytes == bytes { return known }
    let certificate = try OpenPGPCertificate(parsing: bytes)
    certificates.withLock { certificates in
      if certificates.count >= Self.capacity { certificates.removeAll() }
      certificates[fingerprint] = certificate
    }
    return certificate
  }

  private func cache(_ key: OpenPGPKey, as fingerprint: String) {
    keys.withLock { keys in
      if keys.count >= Self.capacity { keys.removeAll() }
      keys[fingerprint] = key
    }
  }
}
