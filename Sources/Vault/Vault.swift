import Cryptography
public import MobileAuth
import SQLite
public import Secrets
import Synchronization

/// Where the token keeps accounts, answers on their way, and the audit chain: one SQLite file in a directory only
/// its owner can enter. Secrets in it are sealed with keys that come from the device secret.
///
/// Any number of processes may have it open. What it cannot show is the whole card put back to an earlier day:
/// that needs a counter outside the card.
public final class Vault: Sendable {
  static let fileName = "vault.sqlite3"

  let keys: VaultKeys
  /// How many audit lines are kept.
  let auditCapacity: Int64
  /// Audit lines that one server's requests may add in an hour unanswered.
  let hourlyLimit: Int64
  let waits = PINWaits()
  private let path: String
  private let connection: Mutex<Connection>

  /// Opens the vault in `directory`, and makes it if there is none.
  /// - Parameter directory: is made if its parent exists; refused if others than this user may enter it.
  /// - Parameter auditCapacity: older audit lines are dropped, a tenth of the capacity at a time; those about decisions
  ///   are kept, as many again.
  /// - Parameter hourlyLimit: audit lines that one server's requests may add in an hour unanswered.
  /// - Parameter readOnly: nothing is made, migrated or written; every call that would write throws `.storage`.
  /// - Throws: `.damaged` if the device secret is not the one the vault was made with.
  public static func open(
    directory: String, deviceSecret: DeviceSecret, auditCapacity: Int64 = 10_000, hourlyLimit: Int64 = 240,
    readOnly: Bool = false
  ) throws(CustodyFault) -> Vault {
    precondition(auditCapacity >= 10, "an audit chain of \(auditCapacity) lines")
    let keys = VaultKeys(of: deviceSecret)
    let path = "\(directory)/\(fileName)"
    guard !readOnly else {
      try StateDirectory.check(directory)
      let connection = try custodyFaults {
        let connection = try Connection(path: path, readOnly: true)
        try connection.requireFormat(Schema.steps(keys).count)
        try Schema.checkCanary(connection, keys)
        return connection
      }
      return Vault(path, connection, keys, auditCapacity, hourlyLimit)
    }
    try StateDirectory.prepare(directory)
    let connection = try custodyFaults {
      let connection = try connect(to: path)
      try connection.migrate(Schema.steps(keys))
      try Schema.checkCanary(connection, keys)
      return connection
    }
    try StateDirectory.synchronize(directory)
    return Vault(path, connection, keys, auditCapacity, hourlyLimit)
  }

  /// What ties a PIN's key to this device: 32 bytes from the device secret, on the card as little as that is.
  public var pinBinding: SecretBytes { keys.pinBinding }

  private init(
    _ path: String, _ connection: consuming sending Connection, _ keys: VaultKeys, _ auditCapacity: Int64,
    _ hourlyLimit: Int64
  ) {
    self.hourlyLimit = hourlyLimit
    self.path = path
    self.connection = Mutex(connection)
    self.keys = keys
    self.auditCapacity = auditCapacity
  }

  /// A rollback journal, not a write-ahead log, because of what stays behind: after a wipe the log would keep the
  /// old pages until it happens to be overwritten, and so would `PERSIST`. `TRUNCATE` empties the journal at every
  /// commit and, from `synchronous=FULL` on, waits until that is on the card; `EXTRA` keeps the same promise should
  /// SQLite ever have to delete the journal instead. `secure_delete` zeroes in the file what rows leave behind (the
  /// card's own wear levelling is out of reach). A few transactions per request make the slower mode no matter.
  private static func connect(to path: String) throws -> Connection {
    let connection = try Connection(path: path)
    let mode = try connection.rows("PRAGMA journal_mode = TRUNCATE") { try $0.text(0) }
    guard mode == ["truncate"] else { throw CustodyFault.storage("journal_mode is \(mode), not truncate") }
    try connection.execute(
      """
      PRAGMA synchronous = EXTRA;
      PRAGMA secure_delete = ON;
      PRAGMA foreign_keys = ON;
      PRAGMA trusted_schema = OFF;
      PRAGMA temp_store = MEMORY;
      """)
    return connection
  }

  /// All of `body` is on the card when this returns, or none of it happened.
  func transaction<Result: Sendable>(
    _ body: @Sendable (borrowing Connection) throws -> Result
  ) throws(CustodyFault) -> Result {
    try custodyFaults { try connection.withLock { try $0.transaction(body) } }
  }

  /// As `snapshot`, but from the file as it is: over a connection of its own, which has nothing cached.
  func freshly<Result: Sendable>(_ body: (borrowing Connection) throws -> Result) throws(CustodyFault) -> Result {
    try custodyFaults { try Self.connect(to: path).snapshot(body) }
  }

  /// `body` reads one state of the vault.
  func snapshot<Result: Sendable>(
    _ body: @Sendable (borrowing Connection) throws -> Result
  ) throws(CustodyFault) -> Result {
    try custodyFaults { try connection.withLock { try $0.snapshot(body) } }
  }
}

/// Says what went wrong in the words the handler knows.
func custodyFaults<Result: ~Copyable>(_ body: () throws -> Result) throws(CustodyFault) -> Result {
  do { return try body() } catch let fault as CustodyFault { throw fault } catch let error as SQLiteError {
    throw error.isDamage ? .damaged("\(error)") : .storage("\(error)")
  } catch CryptographyError.libraryFailure(let what) {
    throw .storage(what)
  } catch is CryptographyError {
    throw .damaged("a sealed record is not what was put there")
  } catch { throw .storage("\(error)") }
}
