// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
package import TokenServerCore

/// Notifications from commands in other processes to devices that are connected to the running server.
extension Database {
  package func post(_ effects: Effects, now: Timestamp) throws {
    guard dialect == .sqlite else {
      return try post(effects.notices.map { SharedEvent($0, isMailed: false) }, from: "", now: now)
    }
    for notice in effects.notices {
      try run(
        "INSERT INTO outbox (client_id, event) VALUES (?, ?)", [notice.clientID, JSON.encode(notice.event)])
    }
  }

  /// Returns and deletes the stored notifications. Callbacks are found in their own table.
  package func collectOutbox(now: Timestamp) throws -> Effects {
    var effects = Effects(callbacksDue: true)
    let posted = try rows("SELECT rowid AS row_number, client_id, event FROM outbox ORDER BY rowid")
    effects.notices = try readable(posted, of: "outbox", now: now, into: &effects) { row in
      Effects.Notice(
        clientID: try row.clientID("client_id"), event: try JSON.decode(DeviceEvent.self, from: row.bytes("event")))
    }
    try run("DELETE FROM outbox")
    return effects
  }

  package func setIssuer(_ issuer: String) throws {
    try run(
      "INSERT INTO running (name, value) VALUES ('issuer', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      [issuer])
  }

  /// The issuer name of the last `serve`.
  package func issuer() throws -> String? {
    try row("SELECT value FROM running WHERE name = 'issuer'").flatMap { try? $0.text("value") }
  }
}
