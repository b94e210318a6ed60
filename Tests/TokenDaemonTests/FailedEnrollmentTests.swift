// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import Cryptography
import FrontPanel
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Synchronization
import Testing
import Vault

@testable import TokenDaemon

/// What an enrollment that failed leaves: what the LED of a token without accounts says, and what it has stored.
@Suite(.timeLimit(.minutes(5))) struct FailedEnrollmentTests {
  private static let uri = "approvaltoken://activate?server=https%3A%2F%2Ft.example&code=1234567890128"

  /// - Returns: false if the enrollment succeeds.
  private func fails(_ options: EnrollmentOptions, in fixture: ServiceFixture) async -> Bool {
    do { try await fixture.handler.answer(.enroll(options)) { _ in } } catch { return true }
    return false
  }

  @Test(
    "The cause is shown until another enrollment has another outcome",
    arguments: [
      (HTTPTransportError.noNetwork("no route"), 1), (.unreachable("refused"), 2), (.untrusted("it has expired"), 3),
    ])
  func cause(error: HTTPTransportError, cause: Int) async throws {
    let fixture = try ServiceFixture(http: RecordingHTTPTransport { _ throws(HTTPTransportError) in throw error })
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await fixture.until(.mustEnroll)
    #expect(await fails(EnrollmentOptions(uri: Self.uri), in: fixture))
    try await fixture.until(.enrollmentFailed(cause: cause))
    fixture.service.reload()
    try await Task.sleep(for: .milliseconds(300))
    #expect(await fixture.board.panel.showing == .enrollmentFailed(cause: cause))
    #expect(await fails(EnrollmentOptions(uri: "https://example.org/"), in: fixture))
    try await fixture.until(.enrollmentFailed(cause: 4))
    try await fixture.enroll("mail")
    fixture.service.reload()
    try await fixture.until(.idle(pending: 0))
    // With an account, a failure is not shown, and a former one is forgotten.
    #expect(await fails(EnrollmentOptions(uri: "https://example.org/"), in: fixture))
    try fixture.vault.wipe(account: AccountID("mail"), AuditEntry(.wiped, wallClockMilliseconds: 0))
    fixture.service.reload()
    try await fixture.until(.mustEnroll)
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  @Test("Only errors of the network and of the URI are shown as such") func otherCauses() throws {
    let fixture = try ServiceFixture()
    let accounts = fixture.handler.accounts
    for error in [TokenServerError.unreachable(""), .rateLimited(retryAfter: nil)] {
      #expect(accounts.indication(ofFailure: error) == .enrollmentFailed(cause: 2), "\(error)")
    }
    let others: [any Error] = [
      StateStoreError.io(call: "write", reason: "disk full"), StateStoreError.corrupt(.account(AccountID("alice"))),
      StateStoreError.corrupt(.encryptedRecord), StateStoreError.newerFormat(2, known: 1),
      CryptographyError.libraryFailure("no memory"),
    ]
    for error in others { #expect(accounts.indication(ofFailure: error) == .enrollmentFailed(cause: 5), "\(error)") }
  }

  @Test("A choice of the PIN that the user has ended says how to complete the enrollment, and is no failure")
  func endedChoice() throws {
    let fixture = try ServiceFixture()
    let accounts = fixture.handler.accounts
    for (ending, code) in [(.canceled, .refused), (.timedOut, .unavailable)]
      as [(PanelDialog.EntryError, CommandError.Code)]
    {
      let error = UnfinishedEnrollmentError(ending, remedy: "do it again")
      #expect(accounts.indication(ofFailure: error) == nil)
      let shown = try #require(CommandError(explaining: error))
      #expect(shown.description == "\(ending.explanation). The enrollment is not complete: do it again")
      #expect(shown.code == code && shown.number == ending.number)
    }
  }

  /// Attempts without a network, and one that reaches the network.
  @Test("Without a network the enrollment waits for one, and the LED shows that") func waitsForANetwork() async throws {
    let network = Mutex((isThere: false, attempts: [Bool]()))
    let fixture = try ServiceFixture(
      http: RecordingHTTPTransport { _ throws(HTTPTransportError) in
        let isThere = network.withLock { network in
          network.attempts.append(network.isThere)
          return network.isThere
        }
        throw isThere ? .unreachable("refused") : .noNetwork("no route")
      })
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await fixture.until(.mustEnroll)
    var options = EnrollmentOptions(uri: Self.uri)
    options.networkWait = 600
    let enrollment = Task { [options] in try await fixture.handler.answer(.enroll(options)) { _ in } }
    try await fixture.until(.lookingForNetwork)
    network.withLock { $0.isThere = true }
    await #expect(throws: (any Error).self) { try await enrollment.finished() }
    let attempts = network.withLock { $0.attempts }
    #expect(attempts.first == false && attempts.last == true && attempts.count { $0 } == 1)
    try await fixture.until(.enrollmentFailed(cause: 2))
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  @Test("The wait of an enrollment for a network can be ended, and has a limit") func theWaitEnds()
    async throws
  {
    let fixture = try ServiceFixture(
      http: RecordingHTTPTransport { _ throws(HTTPTransportError) in throw .noNetwork("no route") })
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    var options = EnrollmentOptions(uri: Self.uri)
    options.networkWait = 600
    let endless = Task { [options] in try await fixture.handler.answer(.enroll(options)) { _ in } }
    try await fixture.until(.lookingForNetwork)
    endless.cancel()
    await #expect(throws: CancellationError.self) { try await endless.finished() }
    try await fixture.until(.mustEnroll)
    options.networkWait = 1
    #expect(await fails(options, in: fixture))
    try await fixture.until(.enrollmentFailed(cause: 1))
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  /// A server that refuses each enrollment: that of "again" after it has lost the account, others after a PIN was
  /// chosen for the account.
  private struct RefusingBackend: ServerBackend {
    static let kind = "refusing"
    static let displayName = "refusing"
    static let uriPrefixes = ["refusing:"]

    let context: BackendContext

    init(_ context: BackendContext) { self.context = context }
    static func recognizes(_ uri: String) -> Bool { uri.hasPrefix("refusing:") }
    static func form(of uri: String) throws -> EnrollmentForm { EnrollmentForm() }

    func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
      var account = try context.store.account(AccountID("ann"))
      if request.uri == "refusing:again" {
        account.id = AccountID("bob")
        account.stage = .mustEnrollAgain
      } else {
        account.pin = PINMetadata(.token, length: 5)
      }
      try context.store.put(account, nil)
      throw TokenServerError.refused("no")
    }

    func client(
      for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
    ) throws -> (any TokenServerClient)? {
      let client = ScriptedServerClient(server.id.text, accounts: ["ann": "enrollment"])
      if let pin = accounts.first?.pin {
        client.set(challenge: .pin(PINChallenge(length: pin.length, counts: FailureCounts(max: 5, previous: 0))))
      }
      client.set(
        list: [
          PendingMobileAuthRequest(
            transaction: try #require(TransactionID(numberedUUID(1))), server: server.id, account: AccountID("ann"),
            sentAtMilliseconds: 0, timeToLive: .seconds(600), message: "Log in?",
            deadline: environment.now + .seconds(600))
        ])
      return client
    }
  }

  private func enrollAnn(in fixture: ServiceFixture) throws {
    let server = TokenServerRecord(
      id: TokenServerID("refusing"), kind: RefusingBackend.kind, url: "refusing:", secrets: SecretBytes(copying: []))
    try fixture.vault.put(server)
    try fixture.vault.put(
      AccountRecord(
        id: AccountID("ann"), server: server.id, profile: "ann", stage: .active, secrets: SecretBytes(copying: [])),
      nil)
  }

  /// Fails if the LED does not say that an account must be enrolled again.
  @Test("The accounts are read again if an enrollment was lost again") func lostAgain() async throws {
    let panel = ScriptedPanel()
    let fixture = try ServiceFixture(kinds: Backends.kinds + [RefusingBackend.self], panel: panel)
    try enrollAnn(in: fixture)
    let running = Task { _ = try? await fixture.service.run() }
    await panel.until(challenges: 1)
    #expect(await fails(EnrollmentOptions(uri: "refusing:again"), in: fixture))
    await panel.until(challenges: 2)
    #expect(panel.prompts.last == .confirmation)
    running.cancel()
    try await running.finished()
  }

  @Test("A PIN that was chosen is required even if that enrollment failed") func pinIsRequired() async throws {
    let panel = ScriptedPanel()
    let fixture = try ServiceFixture(kinds: Backends.kinds + [RefusingBackend.self], panel: panel)
    try enrollAnn(in: fixture)
    let running = Task { _ = try? await fixture.service.run() }
    await panel.until(challenges: 1)
    #expect(panel.prompts.last == .confirmation)
    #expect(await fails(EnrollmentOptions(uri: "refusing:ann"), in: fixture))
    await panel.until(challenges: 2)
    #expect(panel.prompts.last == .digits(count: 5))
    running.cancel()
    try await running.finished()
  }
}
