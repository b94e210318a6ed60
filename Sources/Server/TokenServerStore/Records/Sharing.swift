// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
package import TokenServerCore

/// What servers on one PostgreSQL database tell each other. A SQLite file has one server and none of these tables.
extension Database {
  /// How long a server counts as running after it last wrote the time.
  package static var serverLifetime: Duration { .seconds(10) }

  /// The time of the database's clock.
  func databaseTime() throws -> Timestamp {
    let time = try row("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms")
    guard let time else { throw CorruptRowError("now_ms", "is missing") }
    return try time.time("now_ms")
  }

  /// The time of the clock that all servers have in common.
  private func shared(_ now: Timestamp) -> Timestamp { now + clockDifference }

  /// Writes that the server runs.
  /// - Returns: whether it was new to the others, and the number of running servers.
  package func noteServer(_ id: String, now: Timestamp) throws -> (isNew: Bool, running: Int) {
    let isKnown = try run("UPDATE server SET seen_at_ms = ? WHERE id = ?", [shared(now), id]) > 0
    if !isKnown { try run("INSERT INTO server (id, seen_at_ms) VALUES (?, ?)", [id, shared(now)]) }
    return (!isKnown, try runningServers(now: now))
  }

  /// The number of servers that run on the database, as far as it knows; 0 for a SQLite file.
  package func runningServers(now: Timestamp) throws -> Int {
    guard dialect == .postgreSQL else { return 0 }
    return try row("SELECT COUNT(*) AS count FROM server WHERE seen_at_ms > ?", [shared(now) - Self.serverLifetime])
      .map { try $0.count("count") } ?? 0
  }

  /// Fails on a database that cannot be changed, such as a standby. Not while commits wait for a synchronous standby.
  package func changeNothing() throws {
    // Reads no row with which another server's change could conflict.
    try run("INSERT INTO server (id, seen_at_ms) SELECT '', 0 WHERE 1 = 0")
  }

  /// Deletes what is left of a server.
  package func removeServer(_ id: String) throws {
    try run("DELETE FROM lease WHERE owner = ?", [id])
    try run("DELETE FROM connected_device WHERE server_id = ?", [id])
    try run("DELETE FROM server WHERE id = ?", [id])
  }

  /// Deletes what has expired: servers that ended without a word, and a batch of used proofs and of events that every
  /// server has read.
  /// - Returns: whether there may be more.
  package func forgetShared(now: Timestamp) throws -> Bool {
    // The clock may have been set since the difference was measured.
    let now = dialect == .postgreSQL ? min(shared(now), try databaseTime()) : now
    let ended = try rows("SELECT id FROM server WHERE seen_at_ms < ?", [now - .seconds(60)])
    for row in ended { try removeServer(row.text("id")) }
    let areMoreProofs = try deleteBatch(of: "used_proof", "fingerprint", where: "expires_at_ms < ?", [now])
    return try deleteBatch(of: "outbox", "rowid", where: "at_ms < ?", [now - .seconds(60)]) || areMoreProofs
  }

  // MARK: Replays

  /// - Parameter fingerprint: of a proof or an assertion.
  /// - Returns: false if it was used before, at whichever server.
  package func use(_ fingerprint: [UInt8], until: Timestamp) throws -> Bool {
    try run(
      "INSERT INTO used_proof (fingerprint, expires_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING",
      [fingerprint, shared(until)]) == 1
  }

  // MARK: Leases

  // A lease has no end of its own: it is free when its server has ended, and taken again by the server that has it.

  /// Takes a lease, unless another running server has it.
  /// - Parameter owner: the id of this server.
  func acquireLease(_ name: String, owner: String, now: Timestamp) throws -> Bool {
    try run(
      """
      INSERT INTO lease (name, owner) VALUES (?, ?)
      ON CONFLICT (name) DO UPDATE SET owner = excluded.owner
      WHERE lease.owner = excluded.owner OR lease.owner NOT IN (SELECT id FROM server WHERE seen_at_ms > ?)
      """, [name, owner, shared(now) - Self.serverLifetime]) == 1
  }

  /// Locks the lease until the end of the transaction, so that no other server takes it before.
  func hasLease(_ name: String, owner: String) throws -> Bool {
    try row("SELECT 1 FROM lease WHERE name = ? AND owner = ? FOR UPDATE", [name, owner]) != nil
  }

  func releaseLease(_ name: String, owner: String) throws {
    try run("DELETE FROM lease WHERE name = ? AND owner = ?", [name, owner])
  }

  // MARK: Connected devices

  package func noteConnections(_ changes: [ClientID: Bool], server: String) throws {
    for (device, isConnected) in changes {
      if isConnected {
        try run(
          "INSERT INTO connected_device (client_id, server_id) VALUES (?, ?) ON CONFLICT DO NOTHING", [device, server])
      } else {
        try run("DELETE FROM connected_device WHERE client_id = ? AND server_id = ?", [device, server])
      }
    }
  }

  package func isConnected(_ device: ClientID, now: Timestamp) throws -> Bool {
    guard dialect == .postgreSQL else { return false }
    return try row(
      """
      SELECT 1 FROM connected_device JOIN server ON server.id = connected_device.server_id
      WHERE client_id = ? AND seen_at_ms > ?
      """, [device, shared(now) - Self.serverLifetime]) != nil
  }

  // MARK: Events

  /// Posts events for the other servers.
  /// - Parameter server: the id of this server; empty for a command.
  package func post(_ events: [SharedEvent], from server: String, now: Timestamp) throws {
    for event in events {
      try run(
        "INSERT INTO outbox (client_id, event, origin, is_mailed, at_ms) VALUES (?, ?, ?, ?, ?)",
        [event.notice.clientID, JSON.encode(event.notice.event), server, event.isMailed, shared(now)])
    }
  }

  /// Takes over the publication of an event's hint at the MQTT broker.
  /// - Returns: false if another server has.
  package func takeHint(ofEvent number: Int64) throws -> Bool {
    try run("UPDATE outbox SET is_mailed = 1 WHERE rowid = ? AND is_mailed = 0", [number]) == 1
  }

  /// Wakes the servers, so that they read the events at once.
  func notifyServers(_ payload: String) throws {
    _ = try row("SELECT pg_notify(?, ?)", [PostedEvents.channel, payload])
  }

  /// The highest number of an event; 0 if there is none.
  package func newestEvent() throws -> Int64 {
    try row("SELECT rowid FROM outbox ORDER BY rowid DESC LIMIT 1").map { Int64(try $0.size("rowid")) } ?? 0
  }

  /// The events of other servers and of commands. The numbers of events that are posted at the same time can become
  /// visible in any order.
  /// - Parameters:
  ///   - number: only later events.
  ///   - devices: only events for these; nil for all.
  ///   - isWanted: whether to read the event with this number, for this device.
  /// - Returns: for each its number, and nil in place of an unwanted or unreadable one.
  package func events(
    after number: Int64, notFrom server: String, for devices: Set<ClientID>? = nil,
    where isWanted: (_ number: Int64, _ device: ClientID) -> Bool = { _, _ in true }
  ) throws -> [(number: Int64, event: SharedEvent?)] {
    let (condition, list) = condition(for: devices)
    return try rows(
      "SELECT * FROM outbox WHERE rowid > ? AND origin <> ?\(condition) ORDER BY rowid LIMIT 5000",
      [number, server] + list
    ).map { row in
      let number = Int64(try row.size("rowid"))
      return (number, isWanted(number, try row.clientID("client_id")) ? try? SharedEvent(row) : nil)
    }
  }
}

extension SharedEvent {
  init(_ row: any SQLRow) throws {
    self.init(
      Effects.Notice(
        clientID: try row.clientID("client_id"), event: try JSON.decode(DeviceEvent.self, from: row.bytes("event"))),
      isMailed: try row.flag("is_mailed"))
  }
}
