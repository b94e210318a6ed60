// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite
package import Secrets
import Synchronization
import Threads

/// The state store: accounts, answers being sent and the audit chain, in one SQLite file in a directory that only its
/// owner can enter. Secrets are encrypted with keys derived from the device secret.
///
/// Several processes can open it concurrently. It cannot detect that the whole SD card was restored from an older copy:
/// that would need a counter outside the SD card.
package final class Vault: Sendable {
  static let fileName = "vault.sqlite3"

  /// The state directory.
  package let directory: String
  let keys: VaultKeys
  /// The maximum number of audit entries.
  let auditCapacity: Int64
  /// The maximum number of audit entries per hour that one server's requests can cause without a user action.
  let hourlyLimit: Int64
  let waits = PINWaits()
  private let path: String
  private let storage: Mutex<Storage>
  /// Changes that become durable with the next transaction, in order.
  let deferred = Mutex<[Deferred]>([])
  let knownIntents = KnownIntents()
  /// Whether another process may have removed secrets since the log was last truncated.
  private let isChangedElsewhere = Atomic(false)
  /// Whether a writer has the connection, and may wait for storage.
  private let isWriting = Atomic(false)

  private struct Storage: ~Copyable {
    let connection: Connection
    /// Whether the write-ahead log may have pages with removed secrets: a process may have been killed before it
    /// truncated the log.
    var hasResidue = true
    /// Whether the log has a fixed size.
    let reservesLog: Bool
    var flushes = 0

    /// An error only delays the erasure: what was committed is durable.
    mutating func eraseResidue(waits: Bool) {
      guard hasResidue, (try? connection.truncateLog(waits: waits)) == true else { return }
      hasResidue = false
    }

    /// About 30 KiB are written between two calls that use the log from its beginning. An error only costs time later.
    mutating func keepLogShort() {
      guard reservesLog else { return }
      flushes += 1
      guard flushes % Vault.flushesPerLog == 0 else { return }
      try? connection.reuseLog()
      try? connection.reserveLog(bytes: Vault.logBytes)
    }
  }

  /// The size of a reserved log, and how often it is used from its beginning.
  static let (logBytes, flushesPerLog) = (65_536, 8)

  private func eraseResidue() { storage.withLock { $0.eraseResidue(waits: true) } }

  /// Opens the vault in `directory`, and creates it if it does not exist.
  /// - Parameters:
  ///   - directory: created if its parent exists; refused if other users can enter it.
  ///   - auditCapacity: above this number the oldest tenth of the audit entries is dropped. The same number of decision
  ///     entries is kept in addition.
  ///   - hourlyLimit: the maximum number of audit entries per hour that one server's requests can cause without a user
  ///     action.
  ///   - upgrade: decodes accounts of former formats; nil refuses a vault that has such accounts.
  ///   - reservesLog: gives the log a fixed size: for a process that stays and writes again and again.
  ///   - readOnly: nothing is created, migrated or written; every call that would write throws `.io`.
  ///   - onTrial: the vault stays readable for the release before.
  ///   - formats: those that the program knows.
  /// - Throws: `.corrupt` if the device secret is not the one that the vault was created with; `.newerFormat` if a
  ///   later version wrote it; `.olderFormat` if it could not stay readable on trial.
  package static func open(
    directory: String, deviceSecret: DeviceSecret, auditCapacity: Int64 = 10_000,
    hourlyLimit: Int64 = Int64(Inbox.hourlyLines),
    upgrade: AccountUpgrade? = nil, reservesLog: Bool = false, readOnly: Bool = false, onTrial: Bool = false,
    formats: VaultFormats = .current
  ) throws(StateStoreError) -> Vault {
    precondition(auditCapacity >= 10, "an audit chain of \(auditCapacity) lines")
    let keys = VaultKeys(of: deviceSecret)
    let path = "\(directory)/\(fileName)"
    guard !readOnly else {
      try StateDirectory.check(directory)
      let connection = try mappingStateStoreErrors {
        let connection = try reader(of: path)
        try formats.requireReadable(connection)
        try Schema.checkCanary(connection, keys)
        return connection
      }
      return Vault(directory, connection, keys, auditCapacity, hourlyLimit, reservesLog: false)
    }
    try StateDirectory.prepare(directory)
    let connection = try mappingStateStoreErrors {
      let connection = try connect(to: path)
      try formats.prepare(connection, keys, upgrade, onTrial: onTrial)
      try Schema.checkCanary(connection, keys)
      return connection
    }
    try StateDirectory.synchronize(directory)
    let vault = Vault(directory, connection, keys, auditCapacity, hourlyLimit, reservesLog: reservesLog)
    vault.eraseResidue()
    if reservesLog { vault.storage.withLock { _ = try? $0.connection.reserveLog(bytes: logBytes) } }
    return vault
  }

  /// The device-binding key of PINs: 32 bytes derived from the device secret, never stored.
  package var pinBinding: SecretBytes { keys.pinBinding }

  /// The client id of this token at a broker for push messages: 23 letters and digits derived from the device secret.
  package var brokerClientID: String { keys.brokerClientID }

  private init(
    _ directory: String, _ connection: consuming sending Connection, _ keys: VaultKeys, _ auditCapacity: Int64,
    _ hourlyLimit: Int64, reservesLog: Bool
  ) {
    self.hourlyLimit = hourlyLimit
    self.directory = directory
    path = "\(directory)/\(Self.fileName)"
    storage = Mutex(Storage(connection: connection, reservesLog: reservesLog))
    self.keys = keys
    self.auditCapacity = auditCapacity
  }

  /// Opens a connection. Uses a write-ahead log, so that a commit waits for storage once. A log keeps deleted pages
  /// until it is truncated: `transaction(erasing:)` truncates it. `secure_delete` overwrites deleted rows in the file
  /// (not the copies made by the storage's wear leveling). `synchronous=EXTRA` waits at every commit, and while a new
  /// file changes to the log.
  private static func connect(to path: String) throws -> Connection {
    let connection = try Connection(path: path)
    // The page size of a new file: a commit writes whole pages, most of which have few changed bytes.
    try connection.execute("PRAGMA page_size = 512; PRAGMA synchronous = EXTRA")
    try connection.useWriteAheadLog()
    try connection.execute("PRAGMA secure_delete = ON; PRAGMA foreign_keys = ON; \(everywhere)")
    return connection
  }

  /// Opens a connection that only reads.
  private static func reader(of path: String) throws -> Connection {
    let connection = try Connection(path: path, readOnly: true)
    try connection.execute(everywhere)
    return connection
  }

  /// The settings of every connection.
  private static let everywhere = "PRAGMA trusted_schema = OFF; \(Connection.temporaryDataInMemory)"

  /// Runs the deferred changes and `body` in one transaction: all of it is durable when this returns, or nothing
  /// happened. Push messages that cannot be stored stay in the queue, with all others of their accounts.
  /// - Parameter erasing: whether `body` removes or replaces a secret. Then, when this returns, the former contents of
  ///   its pages are in no file, unless another process was reading the vault; they are erased with the next
  ///   transaction or `flush` after that.
  func transaction<Result: Sendable>(
    erasing: Bool = false, _ body: @Sendable (borrowing Connection) throws -> Result
  ) throws(StateStoreError) -> Result {
    try transaction(erasingAfter: { _ in erasing }, body)
  }

  /// - Parameter isErasing: whether `body`, with this result, has removed or replaced a secret.
  func transaction<Result: Sendable>(
    erasingAfter isErasing: @Sendable (Result) -> Bool, _ body: @Sendable (borrowing Connection) throws -> Result
  ) throws(StateStoreError) -> Result {
    // This is compiled for each type of result, and `write` once.
    let outcome = Outcome<Result>()
    try write { connection in
      let result = try body(connection)
      outcome.value.withLock { $0 = result }
      return isErasing(result)
    }
    guard let result = outcome.value.withLock({ $0 }) else { throw .io(call: "vault", reason: "there is no result") }
    return result
  }

  /// - Parameter body: returns whether it has removed or replaced a secret.
  private func write(_ body: @Sendable (borrowing Connection) throws -> Bool) throws(StateStoreError) {
    threadWillBlock()
    try mappingStateStoreErrors {
      try storage.withLock { storage in
        try writing {
          var changes = deferredChanges
          let count = changes.count
          var leftOut: [Deferred] = []
          var (erasing, isCommitted) = (false, false)
          repeat {
            // The index of the change that is being applied; nil before and afterwards.
            var current: Int?
            do {
              erasing = try storage.connection.transaction { connection in
                var counts = HourlyCounts()
                for (index, change) in changes.enumerated() {
                  current = index
                  try apply(change, &counts, on: connection)
                }
                current = nil
                return try body(connection)
              }
              isCommitted = true
            } catch {
              guard let current, separate(current, of: &changes, &leftOut, error) else { throw error }
            }
          } while !isCommitted
          knownIntents.forget()
          deferred.withLock { queue in
            for index in count..<queue.count { leftOut.append(queue[index]) }
            queue = leftOut
          }
          if isChangedElsewhere.exchange(false, ordering: .relaxed) || erasing { storage.hasResidue = true }
          storage.eraseResidue(waits: erasing)
        }
      }
    }
  }

  /// Without changes, erases what is still in the log because another process was reading, if that process has ended.
  package func flush() throws(StateStoreError) {
    guard deferred.withLock({ !$0.isEmpty }) else {
      _ = storage.withLockIfAvailable { storage in
        if isChangedElsewhere.exchange(false, ordering: .relaxed) { storage.hasResidue = true }
        guard storage.hasResidue else { return }
        threadWillBlock()
        writing { storage.eraseResidue(waits: false) }
      }
      return
    }
    // Before the changes: the first commit at the beginning of the log waits for storage twice, and nothing waits for
    // this one.
    threadWillBlock()
    storage.withLock { storage in writing { storage.keepLogShort() } }
    try transaction { _ in }
  }

  /// To be called with the lock of the storage.
  private func writing<Result>(_ body: () throws -> Result) rethrows -> Result {
    isWriting.store(true, ordering: .relaxed)
    defer { isWriting.store(false, ordering: .relaxed) }
    return try body()
  }

  /// Another process has changed the vault: nothing that was remembered counts, and what it removed may be in the log.
  package func noteChangesElsewhere() {
    isChangedElsewhere.store(true, ordering: .relaxed)
    knownIntents.forget()
  }

  /// Like `snapshot`, but uncached: reads the file over a new connection.
  func readUncached<Result: Sendable>(_ body: (borrowing Connection) throws -> Result) throws(StateStoreError) -> Result
  {
    try mappingStateStoreErrors { try Self.reader(of: path).snapshot(body) }
  }

  /// Runs `body` on a consistent snapshot of the vault. Does not wait for a writer that waits for storage.
  func snapshot<Result: Sendable>(
    _ body: @Sendable (borrowing Connection) throws -> Result
  ) throws(StateStoreError) -> Result {
    try mappingStateStoreErrors {
      if let result = try storage.withLockIfAvailable({ try $0.connection.snapshot(body) }) { return result }
      if isWriting.load(ordering: .relaxed) {
        // After an error, also one of `body`, the other connection decides.
        do { return try Self.reader(of: path).snapshot(body) } catch is SQLiteError {}
      }
      threadWillBlock()
      return try storage.withLock { try $0.connection.snapshot(body) }
    }
  }
}

private final class Outcome<Value: Sendable>: Sendable {
  let value = Mutex<Value?>(nil)
}
