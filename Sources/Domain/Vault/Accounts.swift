// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite
import Secrets

/// An account without its secrets, for display. One that is damaged has the stage `mustEnrollAgain`, and texts that are
/// not verified.
package struct AccountSummary: Sendable, Equatable {
  package let id: AccountID
  package let server: TokenServerID
  /// `https://host[:port]`.
  package let url: String
  package let profile: String
  package let stage: EnrollmentStage
}

extension Vault {
  /// The token servers, ordered by ID, without those whose record is damaged.
  package func servers() throws(StateStoreError) -> [TokenServerRecord] {
    try snapshot { connection in try servers(on: connection) }
  }

  private func servers(on connection: borrowing Connection) throws -> [TokenServerRecord] {
    try connection.rows("SELECT id, kind, url, box FROM servers ORDER BY id") { row in
      try unlessDamaged { try server(in: row) }
    }.compactMap(\.self)
  }

  /// - Returns: nil if there is no such token server.
  package func server(_ id: TokenServerID) throws(StateStoreError) -> TokenServerRecord? {
    try snapshot { connection in try server(id, on: connection) }
  }

  func server(_ id: TokenServerID, on connection: borrowing Connection) throws -> TokenServerRecord? {
    try connection.rows("SELECT id, kind, url, box FROM servers WHERE id = ?", id.text, as: server(in:)).first
  }

  private func server(in row: borrowing Row) throws -> TokenServerRecord {
    let (id, kind, url) = (TokenServerID(try row.text(0)), try row.text(1), try row.text(2))
    let associated = RecordFields.associatedData(ofServer: id, kind: kind, url: url)
    guard let opened = try unlessDamaged({ try keys.open(try row.blob(3), at: associated) }) else {
      throw StateStoreError.corrupt(.server(id))
    }
    return try TokenServerRecord(id: id, kind: kind, url: url, encodedFields: opened)
  }

  /// The accounts, ordered by ID, without those whose record is damaged: they do not keep the others from being used.
  package func accounts() throws(StateStoreError) -> [AccountRecord] {
    try snapshot { connection in try accounts(on: connection) }
  }

  private func accounts(on connection: borrowing Connection) throws -> [AccountRecord] {
    try connection.rows("SELECT id, server, profile, stage, box FROM accounts ORDER BY id") { row in
      try unlessDamaged { try account(in: row) }
    }.compactMap(\.self)
  }

  /// The accounts that cannot be used, ordered by ID: the record of the account, or that of its server, is damaged.
  package func damagedAccounts() throws(StateStoreError) -> [AccountID] {
    try snapshot { connection in try damagedAccounts(on: connection).map(\.id) }
  }

  /// - Returns: with the row of each account, whose ID can be damaged, too.
  private func damagedAccounts(on connection: borrowing Connection) throws -> [(id: AccountID, row: Int64)] {
    let servers = Set(try servers(on: connection).map(\.id))
    let usable = Set(try accounts(on: connection).filter { servers.contains($0.server) }.map(\.id))
    return try connection.rows("SELECT CAST(id AS BLOB), rowid FROM accounts ORDER BY id") { row in
      (id: AccountID(try row.lossyText(0)), row: try row.integer(1))
    }.filter { !usable.contains($0.id) }
  }

  /// Deletes a damaged account, and its server if that is damaged and has no other account.
  /// - Throws: `.notFound` if there is no such account, or it is not damaged.
  package func wipe(damaged account: AccountID, _ entry: AuditEntry) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      guard let found = try damagedAccounts(on: connection).first(where: { $0.id == account }) else {
        throw StateStoreError.notFound(.account(account))
      }
      try connection.run("DELETE FROM accounts WHERE rowid = ?", found.row)
      let readable = Set(try servers(on: connection).map(\.id))
      let unused = try connection.rows(
        """
        SELECT CAST(id AS BLOB), rowid FROM servers
        WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE accounts.server = servers.id)
        """
      ) { row in (id: TokenServerID(try row.lossyText(0)), row: try row.integer(1)) }
      for server in unused where !readable.contains(server.id) {
        try connection.run("DELETE FROM servers WHERE rowid = ?", server.row)
      }
      try append(entry, on: connection)
    }
  }

  /// - Throws: `.notFound` if there is no such account.
  package func account(_ id: AccountID) throws(StateStoreError) -> AccountRecord {
    try snapshot { connection in
      guard let account = try account(id, on: connection) else { throw StateStoreError.notFound(.account(id)) }
      return account
    }
  }

  func account(_ id: AccountID, on connection: borrowing Connection) throws -> AccountRecord? {
    try connection.rows(
      "SELECT id, server, profile, stage, box FROM accounts WHERE id = ?", id.text, as: account(in:)
    ).first
  }

  /// All accounts, ordered by ID.
  package func accountSummaries() throws(StateStoreError) -> [AccountSummary] {
    try snapshot { connection in
      let damaged = Set(try damagedAccounts(on: connection).map(\.id))
      let texts = ["accounts.id", "servers.id", "servers.url", "profile", "stage"].map { "CAST(\($0) AS BLOB)" }
      return try connection.rows(
        """
        SELECT \(texts.joined(separator: ", "))
        FROM accounts JOIN servers ON servers.id = accounts.server ORDER BY accounts.id
        """
      ) { row in
        let id = AccountID(try row.lossyText(0))
        let stage = damaged.contains(id) ? nil : EnrollmentStage(rawValue: try row.lossyText(4))
        return AccountSummary(
          id: id, server: TokenServerID(try row.lossyText(1)), url: try row.lossyText(2),
          profile: try row.lossyText(3), stage: stage ?? .mustEnrollAgain)
      }
    }
  }

  /// Stores the token server, replacing the one with the same ID.
  /// - Throws: `.corrupt` if that one is damaged: it can have had certificate pins, and accounts rely on it.
  package func put(_ server: TokenServerRecord) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      _ = try self.server(server.id, on: connection)
      try put(server, on: connection)
    }
  }

  func put(_ server: TokenServerRecord, on connection: borrowing Connection) throws {
    let associated = RecordFields.associatedData(ofServer: server.id, kind: server.kind, url: server.url)
    try connection.run(
      """
      INSERT INTO servers (id, kind, url, box) VALUES (?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, url = excluded.url, box = excluded.box
      """, server.id.text, server.kind, server.url, keys.seal(server.encodedFields, at: associated))
  }

  /// Stores the account, replacing the one with the same ID, and appends the audit entry if there is one.
  /// - Throws: `.notFound` if there is no such token server, `.conflict` if the ID belongs to an account of another
  ///   server, or a new one is another spelling in Unicode of an account's ID; `.corrupt` if the account is damaged:
  /// its
  ///   PIN and messages are still there.
  package func put(_ account: AccountRecord, _ entry: AuditEntry? = nil) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      _ = try self.account(account.id, on: connection)
      try put(account, on: connection)
      if let entry { try append(entry, on: connection) }
    }
  }

  /// - Parameter commitment: that of a new PIN; nil keeps the account's.
  func put(
    _ account: AccountRecord, committingTo commitment: SecretBytes? = nil, on connection: borrowing Connection
  ) throws {
    let known = try connection.rows("SELECT 1 FROM servers WHERE id = ?", account.server.text) { try $0.integer(0) }
    guard !known.isEmpty else { throw StateStoreError.notFound(.server(account.server)) }
    // SQLite compares bytes. In Swift canonically equivalent names are equal, and are one key of a dictionary.
    let names = try connection.rows("SELECT CAST(id AS BLOB) FROM accounts") { try $0.lossyText(0) }
    let isKnown = names.contains { Array($0.utf8) == Array(account.id.text.utf8) }
    guard isKnown || !names.contains(account.id.text) else {
      throw StateStoreError.conflict(.account(account.id), .nameTaken)
    }
    var fields = account.fields
    if account.pin?.verifier == .token {
      fields[RecordFields.Tag.pinCommitment] = try commitment ?? pinCommitment(of: account.id, on: connection)
    }
    let kept = try connection.run(
      """
      INSERT INTO accounts (id, server, profile, stage, box) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET profile = excluded.profile, stage = excluded.stage, box = excluded.box
      WHERE server = excluded.server
      """, account.id.text, account.server.text, account.profile, account.stage.rawValue,
      keys.seal(
        fields.encoded,
        at: RecordFields.associatedData(of: account.id, account.server, account.profile, account.stage.rawValue)))
    guard kept == 1 else { throw StateStoreError.conflict(.account(account.id), .atAnotherServer) }
  }

  private func account(in row: borrowing Row) throws -> AccountRecord {
    let (id, server) = (AccountID(try row.text(0)), TokenServerID(try row.text(1)))
    let profile = try row.text(2)
    guard let stage = EnrollmentStage(rawValue: try row.text(3)) else { throw StateStoreError.corrupt(.account(id)) }
    guard let opened = try unlessDamaged({ try openedBox(of: row) }) else {
      throw StateStoreError.corrupt(.account(id))
    }
    return try AccountRecord(id: id, server: server, profile: profile, stage: stage, encodedFields: opened)
  }

  /// The decrypted part of an account's row.
  private func openedBox(of row: borrowing Row) throws -> SecretBytes {
    let associated = RecordFields.associatedData(
      of: AccountID(try row.text(0)), TokenServerID(try row.text(1)), try row.text(2), try row.text(3))
    return try keys.open(try row.blob(4), at: associated)
  }

  /// The fields of an account's record; nil if it is missing or damaged.
  func fields(of id: AccountID, on connection: borrowing Connection) throws -> SecretFields? {
    try connection.rows("SELECT id, server, profile, stage, box FROM accounts WHERE id = ?", id.text) { row in
      try unlessDamaged { try openedBox(of: row) }.flatMap { SecretFields(encoded: $0) }
    }.first.flatMap(\.self)
  }
}

/// - Returns: nil if what `read` reads is damaged.
func unlessDamaged<Value>(_ read: () throws -> Value) throws(StateStoreError) -> Value? {
  do { return try mappingStateStoreErrors(read) } catch {
    guard case .corrupt = error else { throw error }
    return nil
  }
}

extension Row {
  /// A text as bytes, which in damaged storage need not be UTF-8.
  func lossyText(_ column: Int32) throws -> String { String(decoding: try blob(column), as: UTF8.self) }
}
