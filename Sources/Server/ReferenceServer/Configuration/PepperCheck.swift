// SPDX-License-Identifier: Apache-2.0
import Foundation
import Secrets
import TokenServerCore
import TokenServerStore

/// The pepper of a database, and during a rotation another one.
struct Peppers: Sendable {
  /// With this one the keys in the database are encrypted.
  let current: SecretBytes
  /// The former one; with `isRotationOpen` the new one.
  let other: SecretBytes?
  /// Whether the files are already replaced, and the keys in the database not yet encrypted with the new pepper.
  let isRotationOpen: Bool
  /// The key of MQTT topics; nil before the first rotation.
  let topicKey: SecretBytes?

  /// Secrets from before the rotation count, too.
  var hasher: KeyedHasher { KeyedHasher(current, former: other, topicKey: topicKey) }
}

extension ServerDirectory {
  /// Finds the pepper with which the keys in the database were encrypted. With another one no portal and no device
  /// could be authenticated, and what the server stores meanwhile would be useless with the right one.
  /// - Throws: `DirectoryError` if there are keys and none of them can be decrypted.
  func peppers(of store: Store) async throws -> Peppers {
    let pepper = try pepper()
    let former = try formerPepper(of: pepper)
    if try await KeyedHasher(pepper).canDecryptKeys(of: store) {
      return Peppers(
        current: pepper, other: former, isRotationOpen: false, topicKey: try await topicKey(of: store, pepper))
    }
    guard let former, try await KeyedHasher(former).canDecryptKeys(of: store) else { throw wrongPepper }
    return Peppers(
      current: former, other: pepper, isRotationOpen: true, topicKey: try await topicKey(of: store, former))
  }

  private func topicKey(of store: Store, _ pepper: SecretBytes) async throws -> SecretBytes? {
    try await store.read { try $0.sealedServerKey(Database.topicKeyName) }
      .map { try KeyedHasher(pepper).open($0, of: Database.topicKeyName) }
  }

  /// Verifies again that the keys in the database were encrypted with this pepper, when the server is registered with
  /// the others: it may have been rotated before, and is not from then on, because this transaction and a rotation
  /// exclude each other.
  /// - Throws: `DirectoryError` if there are keys and none of them can be decrypted.
  func verifyPepper(_ hasher: KeyedHasher, of store: Store) async throws {
    guard try await store.writeBesideRequests({ try hasher.canDecryptKeys(in: $0) }) else { throw wrongPepper }
  }

  private var wrongPepper: DirectoryError {
    let advice = Self.credentialAdvice.map { "\($0); otherwise " } ?? ""
    return DirectoryError(
      description: "\(pepperSource) is not the pepper of this database: its keys cannot be decrypted; \(advice)"
        + "restore pepper and database from the same backup, or after a rotation copy pepper and pepper.former from "
        + "the directory where it was done")
  }

  /// Warnings about files of secrets whose modes let other users read or change them.
  func exposedSecrets(_ configuration: ServerConfiguration) -> [String] {
    [pepperSource, formerPepperSource, file(configuration.privateKeyFile)].compactMap(\.self).compactMap { path in
      let mode = try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      guard let mode, mode & 0o006 != 0 else { return nil }
      return "the mode of \(path) is for all users: chmod o= \(path)"
    }
  }
}

extension KeyedHasher {
  /// How many keys of the database are tried.
  private static let keysToTry = 16

  fileprivate func canDecryptKeys(of store: Store) async throws -> Bool {
    try await store.read { try canDecryptKeys(in: $0) }
  }

  /// Whether one of the first keys can be decrypted, or there are none. A transaction that changes something and a
  /// rotation exclude each other.
  func canDecryptKeys(in database: Database) throws -> Bool {
    let keys = try database.sealedServerKeys(atMost: Self.keysToTry)
    return keys.isEmpty || keys.contains { (try? open($0.sealedSecret, of: $0.fingerprint)) != nil }
  }
}
