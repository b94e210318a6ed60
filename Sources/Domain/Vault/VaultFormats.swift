// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite

/// The formats that a release reads and writes; docs/packaging.md, "Versions of the vault", has the rule. A release on
/// trial is one that is not marked good yet after an update: the board may go back to the release before it.
package struct VaultFormats: Sendable {
  typealias Step = (borrowing Connection) throws -> Void

  /// The first step makes a vault of format 1, the second one makes format 2 of it, and so on up to `newest`.
  let steps: @Sendable (VaultKeys, AccountUpgrade?) -> [Step]
  /// The newest format of the release before, which this release reads and writes, too.
  let former: Int
  let newest: Int

  /// Those of this version. No release has another format.
  package static let current = VaultFormats(
    steps: { Schema.steps($0, $1) }, former: 8, newest: Schema.newestFormat)

  /// Migrates the vault to the newest format. On trial it stays in its format; a new one gets the format `former`.
  /// - Throws: `.newerFormat`; on trial `.olderFormat` for a vault that the release before has not migrated. The file
  ///   is not changed then.
  func prepare(
    _ connection: borrowing Connection, _ keys: VaultKeys, _ upgrade: AccountUpgrade?, onTrial: Bool
  ) throws {
    try refuseNewerFormat(connection)
    guard onTrial else { return try connection.migrate(steps(keys, upgrade)) }
    let format = try connection.formatVersion()
    if format == 0 { return try connection.migrate(Array(steps(keys, upgrade).prefix(former))) }
    guard format >= former else { throw StateStoreError.olderFormat(format, known: former) }
  }

  /// For a program that migrates nothing.
  /// - Throws: `.newerFormat`; `SQLiteError` for a vault that must be migrated first.
  func requireReadable(_ connection: borrowing Connection) throws {
    try refuseNewerFormat(connection)
    try connection.requireFormat(from: former)
  }

  private func refuseNewerFormat(_ connection: borrowing Connection) throws {
    let format = try connection.formatVersion()
    guard format <= newest else { throw StateStoreError.newerFormat(format, known: newest) }
  }
}
