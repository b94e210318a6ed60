// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Testing

@testable import ReferenceAdapter

/// What other commands, also of other processes, do with an account between a read and a write of the adapter.
@Suite("Commands that run meanwhile", .timeLimit(.minutes(5))) struct OtherCommandTests {
  enum Command: CaseIterable {
    case disallow, rename, remove

    /// Runs the command for the account A.
    func run(on registry: MemoryRegistry) {
      guard var account = try? registry.accounts().first else { return }
      switch self {
      case .disallow: account.allowedOrigins = []
      case .rename: account.id = AccountID("B")
      case .remove: break
      }
      try? registry.wipe(account: AccountID("A"), AuditEntry(.removed, wallClockMilliseconds: 0))
      if self != .remove { try? registry.put(account, nil) }
    }
  }

  enum Step: CaseIterable { case keys, push }

  private let registry = MemoryRegistry()
  private let server: FakeServer
  private let http: RecordingHTTPTransport
  private let adapter: ReferenceServerClient

  init() throws {
    server = try FakeServer(registry: registry)
    http = server.makeHTTPTransport()
    adapter = try server.adapter(http)
    try registry.update(AccountID("A")) { known in
      var account = known
      account.allowedOrigins = ["https://shop.example"]
      return account
    }
  }

  /// Checks that what the command has changed is still changed.
  private func expectKept(_ command: Command) throws {
    let accounts = try registry.accounts()
    let ids: [AccountID] =
      switch command {
      case .disallow: [AccountID("A")]
      case .rename: [AccountID("B")]
      case .remove: []
      }
    #expect(accounts.map(\.id) == ids)
    if command == .disallow { #expect(accounts.allSatisfy { $0.allowedOrigins.isEmpty }) }
  }

  @Test("A change of an account's credentials changes nothing else", arguments: Command.allCases)
  func credentials(command: Command) throws {
    registry.afterNextRead { [registry] in command.run(on: registry) }
    do {
      try adapter.prefer("number", of: AccountID("A"))
      let stored = try #require(try registry.accounts().first)
      #expect(try AccountCredentials(stored).preferred == "number")
    } catch let fault as StateStoreError {
      #expect(command == .remove && fault == .notFound(.profile("PROFIL", adapter.id)))
    }
    try expectKept(command)
  }

  @Test("A step of an enrollment undoes nothing", arguments: Step.allCases, Command.allCases)
  func enrollment(step: Step, command: Command) async throws {
    let enrollment = Enrollment(registry: registry, in: server.environment, pinPrompter: nil, progress: { _ in }) {
      [http] _ in http
    }
    var account = try #require(try registry.accounts().first)
    var credentials = try AccountCredentials(account)
    let certificate = server.server.certificate
    let keys = KeyExchangeResponse(
      serverCertificate: certificate.bytes.base64, serverFingerprint: certificate.fingerprint, keyID: "key")
    server.on(step == .keys ? "/profiles/PROFIL/mobile-auth" : "/profiles/PROFIL/push") { [registry] _ in
      command.run(on: registry)
      return HTTPResponse(status: 200, body: JSON.encode(keys))
    }
    server.on("/profiles/PROFIL/mobile-auth/ack", status: 204, "")
    do {
      switch step {
      case .keys: try await enrollment.exchangeKeys(of: &account, &credentials, server.client(http), .user("U"))
      case .push: account = try await enrollment.enrollForPush(account, over: .sse, server.client(http), .user("U"))
      }
      let stored = try #require(try registry.accounts().first)
      #expect(stored.isSame(as: account))
    } catch let fault as StateStoreError {
      #expect(command == .remove && fault == .notFound(.account(AccountID("A"))))
    }
    try expectKept(command)
  }
}
