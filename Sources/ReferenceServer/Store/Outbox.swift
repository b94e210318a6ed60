import Cryptography
import Foundation
import GRDB
import ReferenceProtocol

/// How commands in other processes reach the devices that are connected to the running server.
extension Database {
  func post(_ effects: Effects) throws {
    for notice in effects.notices {
      try run(
        "INSERT INTO outbox (client_id, event) VALUES (?, ?)", [notice.clientID, Data(JSON.encode(notice.event))])
    }
  }

  /// What commands have posted, and an empty outbox. Callbacks are found by their own table.
  func collectOutbox() throws -> Effects {
    var effects = Effects(callbacksDue: true)
    for row in try rows("SELECT client_id, event FROM outbox ORDER BY id") {
      effects.tell(row["client_id"], try JSON.decode(DeviceEvent.self, from: row.bytes("event")))
    }
    try run("DELETE FROM outbox")
    return effects
  }

  func setIssuer(_ issuer: String) throws {
    try run("INSERT OR REPLACE INTO running (name, value) VALUES ('issuer', ?)", [issuer])
  }

  /// What the last `serve` called itself.
  func issuer() throws -> String? {
    try row("SELECT value FROM running WHERE name = 'issuer'").map { $0["value"] }
  }
}
