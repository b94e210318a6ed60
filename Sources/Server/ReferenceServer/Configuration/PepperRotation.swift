// SPDX-License-Identifier: Apache-2.0
import TokenServerCore
import TokenServerStore

/// Replaces the pepper of a database that no server uses. First the files, then the database, in one transaction: in
/// between and after a crash, the former pepper still opens the keys, and a server starts with it.
struct PepperRotation {
  let directory: ServerDirectory
  let store: Store

  struct RotationError: Error, Equatable, CustomStringConvertible {
    let description: String
  }

  /// Rotates the pepper, or completes a rotation that was interrupted.
  /// - Returns: the number of keys that were encrypted again, and the fingerprints of unreadable ones.
  /// - Throws: `RotationError` if a server runs, or the last rotation's pepper is not retired.
  func run() async throws -> (keys: Int, unreadable: [String]) {
    try await store.read { try Self.requireNoServer($0) }
    var peppers = try await directory.peppers(of: store)
    if !peppers.isRotationOpen {
      guard peppers.other == nil else {
        throw RotationError(
          description: "the former pepper is still in use: \(directory.formerPepperSource ?? ""); "
            + "first \"token-server pepper retire\"")
      }
      // Only a key shows with which pepper the database is used.
      _ = try await ServerKeyring(store: store.records, hasher: peppers.hasher).shared()
      try directory.replacePepper()
      peppers = try await directory.peppers(of: store)
    }
    guard peppers.isRotationOpen, let next = peppers.other else {
      throw RotationError(description: "\(directory.pepperSource) was changed by another program")
    }
    let (old, new) = (peppers.hasher, KeyedHasher(next))
    let topicKey = try new.seal(old.topicKey, of: Database.topicKeyName)
    return try await store.write { database in
      try Self.requireNoServer(database)
      let result = try database.rotatePepper(topicKey: topicKey) { fingerprint, sealedSecret in
        guard let secret = try? old.open(sealedSecret, of: fingerprint) else { return nil }
        return try new.seal(secret, of: fingerprint)
      }
      guard result.unreadable.count < result.keys else {
        throw RotationError(description: "the pepper was rotated in another directory at the same time")
      }
      return result
    }
  }

  /// For a file, the lock of the directory says the same.
  private static func requireNoServer(_ database: Database) throws {
    let count = try database.runningServers(now: ServerClock.system.now())
    guard count == 0 else {
      throw RotationError(
        description: "servers that use the database: \(count); stop all; one that was killed counts for ten seconds")
    }
  }
}
