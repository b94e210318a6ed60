// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Synchronization
import Testing
import Vault

@testable import TokenDaemon

/// Calls to resource servers, and the addresses to which they may go.
@Suite(.timeLimit(.minutes(5))) struct CallTests {
  private static let origin = "https://bank.example"
  private let http = RecordingHTTPTransport { _ throws(HTTPTransportError) in
    HTTPResponse(status: 200, headers: ["Content-Type": "text/plain"], body: Array("done".utf8))
  }

  /// Runs a service with the account "ann".
  private func withService(
    reportHold: Duration? = nil, _ body: (ServiceFixture) async throws -> Void
  ) async throws {
    let fixture = try ServiceFixture(reportHold: reportHold, kinds: Backends.kinds + [FileBackend.self], http: http)
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    let uri = "file-token:\(fixture.serverFile)#ann"
    _ = try await fixture.answer(.enroll(EnrollmentOptions(uri: uri)), as: EnrollmentResponse.self)
    let account = try fixture.vault.account(AccountID("ann"))
    try await fixture.until("the server is used") { fixture.service.server(of: account) != nil }
    try await body(fixture)
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  private func allow(_ origins: [String], in fixture: ServiceFixture) throws {
    var account = try fixture.vault.account(AccountID("ann"))
    account.allowedOrigins = origins
    try fixture.vault.put(account)
  }

  private func logIn(_ account: String = "ann", in fixture: ServiceFixture) {
    fixture.service.set(
      UserSession(account: AccountID(account), until: SystemClock().now + .seconds(600), accessToken: "T"))
  }

  private func call(_ url: String, _ method: String = "GET", in fixture: ServiceFixture) async throws -> [ResourceReply]
  {
    let lines = Mutex<[ResourceReply]>([])
    let call = ResourceCall(account: "ann", method: method, url: url, contentType: "text/x", body: [9])
    try await fixture.handler.answer(.call(call)) { line in
      if let line = line as? ResourceReply { lines.withLock { $0.append(line) } }
    }
    return lines.withLock { $0 }
  }

  private func expectRefusal(
    _ code: CommandError.Code, _ number: Int? = nil, saying part: String, _ body: () async throws -> Void
  ) async {
    await #expect {
      try await body()
    } throws: {
      let error = CommandError(explaining: $0)
      return error?.code == code && error?.number == number && "\($0)".contains(part)
    }
  }

  @Test("A call of an allowed origin has the session's token and a proof for its address") func allowedCall()
    async throws
  {
    try await withService { fixture in
      try allow([Self.origin], in: fixture)
      logIn(in: fixture)
      let lines = try await call("https://Bank.example:443/pay?x=1", "PUT", in: fixture)
      #expect(lines == [.head(status: 200, contentType: "text/plain", size: 4), .part(Array("done".utf8))])
      let request = try #require(http.requests.first)
      #expect(http.requests.count == 1 && request.url == "https://bank.example/pay?x=1" && request.method == .put)
      #expect(request.headers["Authorization"] == "DPoP T" && request.headers["Content-Type"] == "text/x")
      #expect(request.headers["DPoP"] == "PUT https://bank.example/pay?x=1 -" && request.body == [9])
      #expect(request.maximumBodyBytes == 1 << 20)
    }
  }

  /// Fails if a program on the board can send the user's token to an address of its choice.
  @Test("Nothing is sent to an origin that is not on the list, to the token server, or without a session")
  func refusedCalls() async throws {
    try await withService { fixture in
      logIn(in: fixture)
      await expectRefusal(.refused, saying: "approval-token allow ann https://bank.example") {
        _ = try await call(Self.origin, in: fixture)
      }
      try allow([Self.origin], in: fixture)
      for url in ["https://bank.example:8443/", "https://bank.example.evil.example", "https://other.example"] {
        await expectRefusal(.refused, saying: "may not call") { _ = try await call(url, in: fixture) }
      }
      for url in ["http://bank.example/", "https://bank.example@evil.example/", "https://bank.example/../x", ""] {
        await expectRefusal(.usage, saying: "not an https address") { _ = try await call(url, in: fixture) }
      }
      await expectRefusal(.usage, saying: "GET, POST, PUT, PATCH, DELETE") {
        _ = try await call(Self.origin, "TRACE", in: fixture)
      }
      fixture.service.set(nil)
      await expectRefusal(.refused, 9010, saying: "approval-token login ann") {
        _ = try await call(Self.origin, in: fixture)
      }
      logIn("bob", in: fixture)
      await expectRefusal(.refused, 9010, saying: "not logged in") { _ = try await call(Self.origin, in: fixture) }
      logIn(in: fixture)
      let server = TokenServerRecord(
        id: TokenServerID("file"), kind: FileBackend.kind, url: Self.origin, secrets: SecretBytes(copying: []))
      try fixture.vault.put(server)
      await expectRefusal(.refused, saying: "not a resource server") { _ = try await call(Self.origin, in: fixture) }
      await expectRefusal(.refused, saying: "not a resource server") {
        _ = try await fixture.answer(.allow(account: "ann", origin: Self.origin), as: OriginsResponse.self)
      }
    }
    #expect(http.requests.isEmpty)
  }

  /// Fails if a program on the board can extend the list alone.
  @Test("An origin is added by a very long hold, and removed without one") func changesOfTheList() async throws {
    try await withService(reportHold: .seconds(6)) { fixture in
      async let allowed = fixture.answer(
        .allow(account: "ann", origin: "https://Bank.example:443"), as: OriginsResponse.self)
      try await fixture.until("a press counts") { await fixture.board.panel.readiness == .counts }
      #expect(try fixture.vault.account(AccountID("ann")).allowedOrigins.isEmpty)
      #expect(try await fixture.answer(.simulate(.notMe), as: Done.self).ignored == nil)
      #expect(try await allowed.allowedOrigins == [Self.origin])
      #expect(try fixture.vault.account(AccountID("ann")).allowedOrigins == [Self.origin])
      let removed = try await fixture.answer(.disallow(account: "ann", origin: Self.origin), as: OriginsResponse.self)
      #expect(removed.allowedOrigins.isEmpty)
      #expect(try fixture.vault.account(AccountID("ann")).allowedOrigins.isEmpty)
      let entries = try fixture.vault.auditRows(newest: 10).compactMap(\.line?.entry)
        .filter { $0.kind == .originsChanged }
      #expect(
        Set(entries.map(\.detail)) == ["allowed https://bank.example", "no longer allowed: https://bank.example"])
    }
  }

  @Test("The list is limited, and takes origins only") func limits() async throws {
    try await withService { fixture in
      await expectRefusal(.usage, saying: "not an origin") {
        _ = try await fixture.answer(.allow(account: "ann", origin: "https://a/b"), as: OriginsResponse.self)
      }
      try allow((1...AccountRecord.mostOrigins).map { "https://a\($0)" }, in: fixture)
      await expectRefusal(.usage, saying: "16 origins already") {
        _ = try await fixture.answer(.allow(account: "ann", origin: Self.origin), as: OriginsResponse.self)
      }
    }
  }

  @Test("Only enrollments whose accounts have sessions take origins") func enrollmentOptions() {
    var options = EnrollmentOptions(uri: "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ")
    options.allowedOrigins = [Self.origin]
    #expect {
      try Backends.check(options)
    } throws: {
      ($0 as? CommandError)?.code == .usage && "\($0)".contains("--allow-origin is for")
    }
  }
}
