// SPDX-License-Identifier: Apache-2.0
package import OpenPGP
import Synchronization

/// The server's OpenPGP keys: one for all enrollments, or one for each (`unique_server_keys`). They are stored
/// encrypted with a key derived from the pepper, and cached in parsed form, because parsing is slower than using them.
package final class ServerKeyring: Sendable {
  /// The maximum number of parsed certificates in memory. Those do not expire.
  private static let capacity = 10_000
  /// For how many devices the shared key stays loaded, about 60 KB for each; of the keys that are each for one device,
  /// half as many to this many stay parsed.
  private static let loaded = 2_000

  private let store: any RecordStore
  private let hasher: KeyedHasher
  private let keys = RecentValues<String, OpenPGPKey>(capacity: ServerKeyring.loaded / 2)
  private let certificates = Mutex<[String: OpenPGPCertificate]>([:])

  package init(store: any RecordStore, hasher: KeyedHasher) {
    self.store = store
    self.hasher = hasher
  }

  package struct CorruptKeyError: Error {}

  /// A device's certificate has expired. Earlier versions of the server enrolled certificates that expire.
  package struct ExpiredCertificateError: Error {}

  /// A key that is not stored yet.
  package struct NewKey: Sendable {
    package let key: OpenPGPKey
    fileprivate let sealedSecret: [UInt8]
    fileprivate let isShared: Bool

    package func insert(into records: any ServerRecords) throws {
      try records.insertServerKey(key.certificate.fingerprint, sealedSecret: sealedSecret, isShared: isShared)
    }
  }

  /// The key for all enrollments, created at the first call.
  package func shared() async throws -> OpenPGPKey {
    if let fingerprint = try await store.read({ try $0.sharedServerKey() }) { return try await key(fingerprint) }
    let new = try make(isShared: true)
    try await store.write { try new.insert(into: $0) }
    return new.key
  }

  /// A key for one enrollment. The transaction that names it first also stores it: a key that nothing names would stay
  /// forever.
  package func make() throws -> NewKey { try make(isShared: false) }

  private func make(isShared: Bool) throws -> NewKey {
    let key = try OpenPGPKey.generate(userID: "Approval Token server", peers: isShared ? Self.loaded : 1)
    let fingerprint = key.certificate.fingerprint
    let new = NewKey(key: key, sealedSecret: try hasher.seal(key.secret, of: fingerprint), isShared: isShared)
    keys.insert(key, for: fingerprint)
    return new
  }

  package func key(_ fingerprint: String) async throws -> OpenPGPKey {
    if let key = keys[fingerprint] { return key }
    guard let stored = try await store.read({ try $0.serverKey(fingerprint) }) else { throw CorruptKeyError() }
    let secret = try hasher.open(stored.sealedSecret, of: fingerprint)
    let key = try OpenPGPKey(secret: secret, peers: stored.isShared ? Self.loaded : 1)
    // Another request may have been faster, and have loaded devices for its copy of the key.
    if let other = keys[fingerprint] { return other }
    keys.insert(key, for: fingerprint)
    return key
  }

  /// The keys of the messages between the server and the profile's device.
  /// - Returns: nil for a profile without keys.
  /// - Throws: `ExpiredCertificateError`; an error of the store.
  package func correspondence(of profile: Profile) async throws -> (key: OpenPGPKey, certificate: OpenPGPCertificate)? {
    guard let serverKey = profile.serverKey, let certificate = try certificate(of: profile) else { return nil }
    return (try await key(serverKey), certificate)
  }

  /// A device's certificate, as stored at its enrollment.
  /// - Throws: `ExpiredCertificateError`
  package func certificate(of profile: Profile) throws -> OpenPGPCertificate? {
    guard let bytes = profile.certificate, let fingerprint = profile.certificateFingerprint else { return nil }
    if let known = certificates.withLock({ $0[fingerprint] }), known.bytes == bytes { return known }
    guard let certificate = try? OpenPGPCertificate(parsingLasting: bytes) else {
      // Parsed for each use, because it can expire until the next one.
      do { return try OpenPGPCertificate(parsing: bytes) } catch {
        if case .certificateNotValid = error { throw ExpiredCertificateError() }
        throw error
      }
    }
    certificates.withLock { certificates in
      if certificates.count >= Self.capacity { certificates.removeAll() }
      certificates[fingerprint] = certificate
    }
    return certificate
  }
}
