// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite

/// The latest time that each token server reported. Used only to check the validity period of that server's certificate
/// on a board whose clock is not set.
enum KnownTime {
  /// The end of the year 9999, in seconds since 1970.
  static let latest: Int64 = 253_402_300_799

  static func row(_ server: TokenServerID, _ seconds: Int64) -> CanonicalBytes {
    var row = CanonicalBytes("server_times", server.text)
    row.add(seconds)
    return row
  }

  /// - Returns: 0 if the server has reported no time, or what is stored is damaged: who can change it could as well
  ///   delete it.
  static func read(
    of server: TokenServerID, from connection: borrowing Connection, _ keys: VaultKeys
  ) throws -> Int64 {
    let found = try connection.rows("SELECT seconds, mark FROM server_times WHERE server = ?", server.text) {
      (try? $0.integer(0), mac: try? $0.blob(1))
    }
    guard case (let seconds?, let mac?)? = found.first, keys.isValidMAC(mac, of: row(server, seconds)),
      (0...latest).contains(seconds)
    else { return 0 }
    return seconds
  }
}

extension Vault {
  /// Seconds since 1970; 0 until the server has reported a time.
  package func latestKnownTime(of server: TokenServerID) throws(StateStoreError) -> Int64 {
    try snapshot { connection in try KnownTime.read(of: server, from: connection, keys) }
  }

  /// Stores a time that the server reported, if it is later than the stored one.
  /// - Parameter time: seconds since 1970; one outside 0 … the end of the year 9999 is ignored.
  /// - Throws: `.notFound` if there is no such token server.
  package func note(time: Int64, of server: TokenServerID) throws(StateStoreError) {
    guard (0...KnownTime.latest).contains(time) else { return }
    try transaction { connection in
      guard time > (try KnownTime.read(of: server, from: connection, keys)) else { return }
      let known = try connection.rows("SELECT 1 FROM servers WHERE id = ?", server.text) { try $0.integer(0) }
      guard !known.isEmpty else { throw StateStoreError.notFound(.server(server)) }
      try connection.run(
        """
        INSERT INTO server_times (server, seconds, mark) VALUES (?, ?, ?)
        ON CONFLICT (server) DO UPDATE SET seconds = excluded.seconds, mark = excluded.mark
        """, server.text, time, keys.mac(KnownTime.row(server, time)))
    }
  }

  /// Deletes the times of all token servers.
  package func forgetKnownTimes() throws(StateStoreError) {
    try transaction { connection in _ = try connection.run("DELETE FROM server_times") }
  }
}
