// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import TokenServerCore
import TokenServerStore

extension ServerDirectory {
  /// Verifies that the keys in the database were encrypted with this pepper. With another one no portal and no device
  /// could be authenticated, and what the server stores meanwhile would be useless with the right one.
  /// - Throws: `DirectoryError` if there are keys and none of them can be decrypted.
  func verifyPepper(_ hasher: KeyedHasher, of store: Store) async throws {
    let keys = try await store.read { try $0.sealedServerKeys(atMost: 16) }
    let canDecrypt = keys.contains { key in
      (try? AES256GCM.open(key.sealedSecret, key: hasher.sealingKey, context: Array(key.fingerprint.utf8))) != nil
    }
    guard keys.isEmpty || canDecrypt else {
      throw DirectoryError(
        description: "\(pepperSource) is not the pepper of this database: its keys cannot be decrypted; "
          + "restore pepper and database from the same backup")
    }
  }

  /// Warnings about files of secrets whose modes let other users read or change them.
  func exposedSecrets(_ configuration: ServerConfiguration) -> [String] {
    [pepperSource, file(configuration.privateKeyFile)].compactMap { path in
      let mode = try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      guard let mode, mode & 0o006 != 0 else { return nil }
      return "the mode of \(path) is for all users: chmod o= \(path)"
    }
  }
}
