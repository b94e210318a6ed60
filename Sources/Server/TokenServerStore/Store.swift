// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Synchronization
package import TokenServerCore

/// The server's database.
package struct Store: Sendable {
  let database: any SQLDatabase
  /// For what must not wait for requests: one connection of its own, or `database` if that is a file.
  private let reserved: any SQLDatabase
  /// Nil: no other server uses the database.
  package let sharedBy: Sharing?
  private let keyedMutex = KeyedMutex()
  /// The names of leases whose end could not be stored.
  private let unreleased = Unreleased()

  private final class Unreleased: Sendable {
    /// More are forgotten: their users get errors at other servers until this one ends.
    private static let most = 10_000
    private let names = Mutex<Set<String>>([])

    var all: Set<String> { names.withLock(\.self) }
    func insert(_ name: String) { names.withLock { if $0.count < Self.most { $0.insert(name) } } }
    func remove(_ name: String) { names.withLock { _ = $0.remove(name) } }
  }

  /// The leases in which the task runs.
  @TaskLocal private static var leases: [String] = []

  /// A server among several that use a database.
  package struct Sharing: Sendable {
    let address: PostgreSQLAddress
    /// The id of this process.
    package let server: String
    /// How long to wait for another server.
    let patience: Duration
    fileprivate let clockDifference = ClockDifference()
  }

  fileprivate final class ClockDifference: Sendable {
    private let measured = Mutex(Duration?.none)

    var duration: Duration { measured.withLock { $0 ?? .zero } }

    /// - Parameter isExact: whether a former difference is replaced.
    func note(_ difference: Duration, isExact: Bool) {
      measured.withLock { if isExact || $0 == nil { $0 = difference } }
    }
  }

  private init(_ database: any SQLDatabase, reserved: any SQLDatabase, sharedBy: Sharing? = nil) {
    self.database = database
    self.reserved = reserved
    self.sharedBy = sharedBy
  }

  /// Opens the embedded database, one SQLite file, and creates or updates its tables.
  package init(path: String) throws {
    let database = try SQLiteDatabase(path: path)
    self.init(database, reserved: database)
  }

  /// Connects to a PostgreSQL database, and creates or updates its tables. Other servers may use it too.
  /// - Parameters:
  ///   - connections: the maximum number of concurrent transactions, without those of `readBesideRequests` and
  ///     `writeBesideRequests`, which have one connection more.
  ///   - patience: how long a transaction waits for a connection, and is repeated after conflicts; how long
  ///     `exclusively` waits for another server.
  /// - Throws: `StorageUnavailableError`, also if the database cannot be reached or does not accept connections yet;
  ///   another error if it refuses this program's connection or its tables.
  package init(_ address: PostgreSQLAddress, connections: Int, patience: Duration = .seconds(10)) throws {
    try PostgreSQLDatabase.migrate(address)
    self.init(
      PostgreSQLDatabase(address, connections: connections, patience: patience),
      reserved: PostgreSQLDatabase(address, connections: 1, patience: patience),
      sharedBy: Sharing(address: address, server: Random.bytes(8).lowercaseHex, patience: patience))
  }

  /// Whether a PostgreSQL database has the keys of a server, of whichever version. Changes nothing.
  /// - Throws: as `init`.
  package static func hasServerKeys(_ address: PostgreSQLAddress) throws -> Bool {
    try PostgreSQLDatabase.hasServerKeys(address)
  }

  /// Runs `body` while no other task, of this or another server on the database, does so with the same name. If this
  /// server loses the lease meanwhile, because the others take it for ended, no further change of `body` is committed.
  /// - Parameter name: may contain anything that a client wrote.
  /// - Throws: `StorageUnavailableError` if too many tasks wait for their turn, another server runs its `body` for too
  ///   long, or the lease is lost; the error of `body`.
  package func exclusively<Value: Sendable>(
    _ name: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    let deadline = sharedBy.map { ContinuousClock.now + $0.patience }
    let name = Self.storable(name)
    do {
      return try await keyedMutex.withLock(name) { try await leased(name, until: deadline, body) }
    } catch is KeyedMutex.TooManyWaitingError { throw Self.crowded }
  }

  private func leased<Value: Sendable>(
    _ name: String, until deadline: ContinuousClock.Instant?, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    guard let sharedBy, let deadline else { return try await body() }
    let server = sharedBy.server
    do { try await acquireLease(name, owner: server, until: deadline) } catch {
      // It may have been taken.
      unreleased.insert(name)
      throw error
    }
    let result: Result<Value, any Error>
    do { result = .success(try await Self.$leases.withValue(Self.leases + [name], operation: body)) } catch {
      result = .failure(error)
    }
    do { try await end(name, owner: server) } catch { unreleased.insert(name) }
    return try result.get()
  }

  /// Ends leases whose end could not be stored, without those whose names a task uses; to be called again and again
  /// while the server runs.
  package func releaseLeases() async throws {
    guard let server = sharedBy?.server else { return }
    for name in unreleased.all {
      try await keyedMutex.withLockIfFree(name) {
        try await end(name, owner: server)
        unreleased.remove(name)
      }
    }
  }

  /// The name itself, or its hash if it is too long for the index of a table, or cannot be stored as text.
  private static func storable(_ name: String) -> String {
    let isPlain = name.utf8.count <= 200 && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    return isPlain ? name : SHA256.hash(Array(name.utf8)).base64URL
  }

  private func end(_ name: String, owner: String) async throws {
    try await database.write(isUrgent: true) { try Database($0).releaseLease(name, owner: owner) }
  }

  /// Waits until `deadline`, which may be over: the tasks of this server took their turns before.
  private func acquireLease(_ name: String, owner: String, until deadline: ContinuousClock.Instant) async throws {
    var pause = Duration.milliseconds(5)
    while try await !write({ try $0.acquireLease(name, owner: owner, now: ServerClock.system.now()) }) {
      guard ContinuousClock.now < deadline else { throw Self.busy }
      try await Task.sleep(for: pause * Double.random(in: 0.5..<1.5))
      pause = min(pause * 2, .milliseconds(100))
    }
  }

  private static let busy = StorageUnavailableError.busy("another server verifies attempts of the same user")
  private static let crowded = StorageUnavailableError.busy("too many attempts of the same user wait")

  /// How much the database's clock is ahead of this server's, as it was last measured; nil for the embedded database.
  package var clockDifference: Duration? { sharedBy?.clockDifference.duration }

  /// Measures how much the database's clock is ahead of this server's. What servers tell each other has the time of the
  /// database's clock, so that one whose clock is wrong does not take the others for ended.
  /// - Parameter besideRequests: as `readBesideRequests`.
  /// - Returns: the difference; a former one if the database took longer than a second to answer.
  @discardableResult
  package func measureClock(_ clock: ServerClock, besideRequests: Bool = false) async throws -> Duration {
    guard let sharedBy else { return .zero }
    let (sent, began) = (clock.now(), Uptime.now())
    let time = try await (besideRequests ? reserved : database).read { try Database($0).databaseTime() }
    let taken = Uptime.now() - began
    sharedBy.clockDifference.note(time - (sent + taken / 2), isExact: taken < .seconds(1))
    return sharedBy.clockDifference.duration
  }

  private func records(_ transaction: any SQLTransaction) -> Database {
    Database(transaction, clockDifference: clockDifference ?? .zero)
  }

  /// Wakes the other servers after a change with events. An engine without NOTIFY lets them find the events when they
  /// look the next time, within a second.
  /// - Parameter devices: those of the events; nil for any.
  package func notifyServers(of devices: Set<ClientID>? = nil) async {
    let payload = devices.map { PostedEvents(of: sharedBy?.server ?? "", for: $0).payload }
    try? await writeStatement { try $0.notifyServers(payload ?? "") }
  }

  /// Listens for events that other servers and commands have posted.
  /// - Parameters:
  ///   - changed: called with an error when the database can no longer be listened to, and with nil when it can again.
  ///   - posted: called with the devices of the events; with nil if there may be some for any device.
  package func listen(
    changed: @escaping @Sendable ((any Error)?) -> Void, _ posted: @escaping @Sendable (Set<ClientID>?) -> Void
  ) throws -> PostgreSQLListener? {
    try sharedBy.map { sharing in
      try PostgreSQLListener(to: sharing.address, channel: PostedEvents.channel, changed: changed) { payload in
        guard let events = payload.flatMap(PostedEvents.init) else { return posted(nil) }
        if events.server != sharing.server { posted(events.devices) }
      }
    }
  }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await database.read { try body(records($0)) }
  }

  /// Runs `change` as one transaction, and returns when it is durable. An error rolls it back. `change` may run more
  /// than once.
  /// - Parameter isUrgent: false for a change whose result no user waits for: it may wait up to 50 ms, to share the
  ///   commit of another one.
  package func write<Value: Sendable>(
    isUrgent: Bool = true, _ change: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    let (leases, server) = (Self.leases, sharedBy?.server ?? "")
    return try await database.write(isUrgent: isUrgent) { transaction in
      let database = records(transaction)
      for name in leases where try !database.hasLease(name, owner: server) { throw Self.busy }
      return try change(database)
    }
  }

  /// As `write`, for a change of exactly one statement, and in no lease. It may run again after it was committed.
  package func writeStatement<Value: Sendable>(
    isUrgent: Bool = true, _ change: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try await database.writeStatement(isUrgent: isUrgent) { try change(records($0)) }
  }

  /// As `read`, at once, whatever requests do with the database.
  package func readBesideRequests<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try await reserved.read { try body(records($0)) }
  }

  /// As an urgent `write`, in no lease. With PostgreSQL at once, whatever requests do with the database.
  package func writeBesideRequests<Value: Sendable>(
    _ change: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try await reserved.write(isUrgent: true) { try change(records($0)) }
  }

  /// The store for the core.
  package var records: any RecordStore { CoreStore(store: self) }

  /// The number of transactions that wait, without those beside requests.
  package var waiting: Int { database.waiting }

  /// The connections for requests; nil for the embedded database.
  package var connections: ConnectionCounts? { database.connections }

  package func close() {
    database.close()
    if sharedBy != nil { reserved.close() }
  }
}

private struct CoreStore: RecordStore {
  let store: Store

  func exclusively<Value: Sendable>(
    _ name: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await store.exclusively(name, body)
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value {
    try await store.read { try body($0) }
  }

  func write<Value: Sendable>(_ change: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value {
    try await store.write { try change($0) }
  }
}
