// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite
import Secrets

/// The encrypted part of a server or account: `SecretFields`.
enum RecordBox {
  enum Tag: UInt16 {
    case enrollment = 1
    /// Encoded by the adapter.
    case credentials = 2
  }

  static func associatedData(ofServer id: TokenServerID, kind: String, url: String) -> CanonicalBytes {
    CanonicalBytes("servers", id.text, kind, url)
  }

  static func associatedData(
    of id: AccountID, _ server: TokenServerID, _ profile: String, _ stage: String
  ) -> CanonicalBytes {
    CanonicalBytes("accounts", id.text, server.text, profile, stage)
  }

  static func boxed(_ enrollment: EnrollmentID, _ credentials: SecretBytes) -> SecretFields {
    var fields = SecretFields()
    fields.set(Tag.enrollment, text: enrollment.text)
    fields[Tag.credentials] = credentials
    return fields
  }

  /// Migrates boxes that contain only what the adapter encoded. A box that cannot be decrypted stays as it is: it cannot
  /// be decrypted afterwards either.
  static func migrate(_ connection: borrowing Connection, _ keys: VaultKeys) throws {
    let servers = try connection.rows("SELECT id, kind, url, box FROM servers") { row in
      (
        id: try row.text(0), try row.blob(3),
        associatedData(ofServer: TokenServerID(try row.text(0)), kind: try row.text(1), url: try row.text(2))
      )
    }
    for (id, box, place) in servers {
      guard let former = try? keys.open(box, at: place) else { continue }
      let sealed = try keys.seal(boxed(EnrollmentID(), former).encoded, at: place)
      try connection.run("UPDATE servers SET box = ? WHERE id = ?", sealed, id)
    }
    let accounts = try connection.rows("SELECT id, server, profile, stage, box FROM accounts") { row in
      (
        id: try row.text(0), try row.blob(4),
        associatedData(
          of: AccountID(try row.text(0)), TokenServerID(try row.text(1)), try row.text(2), try row.text(3))
      )
    }
    for (id, box, place) in accounts {
      guard let former = try? keys.open(box, at: place) else { continue }
      let sealed = try keys.seal(boxed(EnrollmentID(), former).encoded, at: place)
      try connection.run("UPDATE accounts SET box = ? WHERE id = ?", sealed, id)
    }
  }
}

extension TokenServerRecord {
  /// - Throws: `.corrupt` if the opened box is not in the present format.
  init(id: TokenServerID, kind: String, url: String, boxed opened: SecretBytes) throws(StateStoreError) {
    guard let fields = SecretFields(encoded: opened), let registration = fields.text(RecordBox.Tag.enrollment),
      let credentials = fields[RecordBox.Tag.credentials]
    else { throw .corrupt(.server(id)) }
    self.init(id: id, kind: kind, url: url, registration: EnrollmentID(registration), secrets: credentials)
  }

  var boxed: SecretBytes { RecordBox.boxed(registration, secrets).encoded }
}

extension AccountRecord {
  /// - Throws: `.corrupt` if the opened box is not in the present format.
  init(
    id: AccountID, server: TokenServerID, profile: String, stage: EnrollmentStage, boxed opened: SecretBytes
  ) throws(StateStoreError) {
    guard let fields = SecretFields(encoded: opened), let enrollment = fields.text(RecordBox.Tag.enrollment),
      let credentials = fields[RecordBox.Tag.credentials]
    else { throw .corrupt(.account(id)) }
    self.init(
      id: id, server: server, profile: profile, stage: stage, enrollment: EnrollmentID(enrollment),
      secrets: credentials)
  }

  var boxed: SecretBytes { RecordBox.boxed(enrollment, secrets).encoded }
}
