// SPDX-License-Identifier: Apache-2.0
import ServerTestSupport
import Testing

@testable import TokenServerStore

/// `token-server migrate`, with rows in every table.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CopyTests {
  private let original: TemporaryStore
  private let copy: TemporaryStore

  init() throws { (original, copy) = (try TemporaryStore(), try TemporaryStore(.postgreSQL)) }

  @Test("All rows of every table are copied but those of a running server") func complete() async throws {
    try await original.store.write { try PoisonedColumnTests.fill($0) }
    let counts = try await original.store.copy(to: copy.store) { _, _ in }
    let expected = Set(PoisonedColumnTests.tables).subtracting(["outbox", "running"]).union(["set_aside"])
    #expect(Set(counts.keys) == expected)
    for (table, count) in counts where table != "set_aside" { #expect(count >= 2, "\(table)") }
  }

  @Test(
    "A copy with a difference is not committed",
    arguments: ["pin_attempt", "knowledge", "authenticator_attempt", "verdict", "mobile_auth_transaction"])
  func difference(table: String) async throws {
    try await original.store.write { try PoisonedColumnTests.fill($0) }
    let time = table == "knowledge" ? "proposed_at_ms" : "created_at_ms"
    try TestPostgreSQL.query(
      """
      CREATE FUNCTION alter_row() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.\(time) := NEW.\(time) + 1; RETURN NEW; END $$;
      CREATE TRIGGER alter_row BEFORE INSERT ON \(table) FOR EACH ROW EXECUTE FUNCTION alter_row()
      """, in: copy.url ?? "")
    let error = await #expect(throws: CopyError.self) { try await original.store.copy(to: copy.store) { _, _ in } }
    #expect(error?.description == "the copy of the table \(table) differs from the original")
    #expect(try await copy.store.read { try $0.row(#"SELECT 1 FROM "user""#) == nil })
  }
}
