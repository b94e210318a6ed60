// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Secrets
import ServerBackends
import Synchronization
import Testing
import Vault

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct ListenersTests {
  /// A kind of server whose client ignores cancellation.
  private struct StuckBackend: ServerBackend {
    static let kind = "stuck"
    static let displayName = "stuck"
    static let uriPrefixes = ["stuck:"]
    /// Shared by the clients of the only test that uses it.
    static let calls = Calls()

    init(_ context: BackendContext) {}
    static func recognizes(_ uri: String) -> Bool { false }
    static func form(of uri: String) throws -> EnrollmentForm { EnrollmentForm() }
    func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord { throw CancellationError() }

    func client(
      for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
    ) throws -> (any TokenServerClient)? {
      StuckClient(id: server.id, enrollments: Enrollments(server, accounts), calls: Self.calls)
    }
  }

  private final class Calls: Sendable {
    private let state = Mutex((begun: 0, ended: 0, areReleased: false))
    var begun: Int { state.withLock { $0.begun } }
    var ended: Int { state.withLock { $0.ended } }
    func release() { state.withLock { $0.areReleased = true } }

    /// Waits for `release`, at most 2 minutes, also in a canceled task.
    func wait() async {
      state.withLock { $0.begun += 1 }
      let waiting = Task.detached { [self] in
        for _ in 0..<12_000 where !state.withLock({ $0.areReleased }) { try? await Task.sleep(for: .milliseconds(10)) }
      }
      // Not `finished()`, which ends when the caller is canceled.
      await waiting.value
      state.withLock { $0.ended += 1 }
    }
  }

  private struct StuckClient: TokenServerClient {
    let id: TokenServerID
    let enrollments: Enrollments
    let calls: Calls

    func validate() async throws(TokenServerError) -> Validation { Validation() }
    func hints() -> AsyncThrowingStream<Hint, any Error> { AsyncThrowingStream { $0.yield(.connected) } }
    func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
      await calls.wait()
      return []
    }
    func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
      throw .requestNotFound
    }
    func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse { throw .requestNotFound }
    func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict { throw .requestNotFound }
    func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerError) -> RemoteStatus {
      throw .requestNotFound
    }
  }

  /// Fails if the next round waits for every listener of the one before.
  @Test("A listener that does not end delays the handler of the next round by some seconds only")
  func stuckListener() async throws {
    let fixture = try ServiceFixture(kinds: Backends.kinds + [StuckBackend.self])
    try await fixture.enroll("mail")
    let server = TokenServerRecord(
      id: TokenServerID("stuck"), kind: StuckBackend.kind, url: "stuck:", secrets: SecretBytes(copying: []))
    try fixture.vault.put(server)
    try fixture.vault.put(
      AccountRecord(
        id: AccountID("ann"), server: server.id, profile: "ann", stage: .active, secrets: SecretBytes(copying: [])),
      nil)
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    let calls = StuckBackend.calls
    try await fixture.until("a call begins") { calls.begun == 1 }
    let entry = AuditEntry(.disenrolled, account: AccountID("mail"), wallClockMilliseconds: 0)
    try fixture.vault.dropKeys(of: AccountID("mail"), entry)
    fixture.service.reload()
    try await fixture.until(.mustEnroll)
    #expect(calls.ended == 0)
    calls.release()
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }
}
