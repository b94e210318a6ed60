// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Testing

@Suite("Allow-lists of accounts", .timeLimit(.minutes(1))) struct OriginTests {
  private let fixture: OperationsFixture
  private let origin: HTTPOrigin
  private var operations: AccountOperations { fixture.operations }

  init() throws {
    fixture = try OperationsFixture()
    origin = try #require(HTTPOrigin("https://bank.example"))
  }

  private var stored: [String] {
    get throws { try fixture.store.account(AccountID("ann")).allowedOrigins }
  }

  @Test("An origin is added and removed once each, with an entry in the audit chain") func changes() throws {
    let account = try fixture.account("ann")
    let allowed = try #require(try operations.allow(origin, for: account))
    #expect(try stored == ["https://bank.example"] && allowed.account.allowedOrigins == stored)
    #expect(try operations.allow(origin, for: allowed.account)?.entry.detail == nil)
    #expect(try #require(try operations.disallow(origin, for: allowed.account)).entry.detail.hasPrefix("no longer"))
    #expect(try stored.isEmpty && operations.disallow(origin, for: account)?.entry.detail == nil)
    let details = ["allowed https://bank.example", "no longer allowed: https://bank.example"]
    #expect(fixture.store.details(of: .originsChanged) == details)
  }

  /// Fails if a change overwrites one that another command made since the account was read.
  @Test("A list that was changed since it was read is not overwritten") func concurrentChange() throws {
    let account = try fixture.account("ann")
    try fixture.account("ann") { $0.allowedOrigins = ["https://other.example"] }
    let conflict = StateStoreError.conflict(.account(AccountID("ann")), .changedMeanwhile)
    #expect(throws: conflict) { try operations.allow(origin, for: account) }
    #expect(try stored == ["https://other.example"] && fixture.store.audit.isEmpty)
    var former = account
    former.allowedOrigins = [origin.text]
    #expect(throws: conflict) { try operations.disallow(origin, for: former) }
  }

  @Test("The origin of the token server is not added, nor one beyond the limit") func limits() throws {
    let account = try fixture.account("ann")
    let server = try #require(HTTPOrigin("https://able.example"))
    #expect(throws: AccountError.originOfTokenServer("https://able.example", account.id)) {
      try operations.allow(server, for: account)
    }
    let full = try fixture.account("ann") { record in
      record.allowedOrigins = (1...AccountRecord.mostOrigins).map { "https://a\($0).example" }
    }
    #expect(throws: AccountError.tooManyOrigins(account.id)) { try operations.allow(origin, for: full) }
    #expect(try stored == full.allowedOrigins && fixture.store.audit.isEmpty)
  }
}
