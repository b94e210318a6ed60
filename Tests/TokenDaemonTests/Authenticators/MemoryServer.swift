// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import PINProtection
import Secrets
import ServerBackends
import Synchronization

/// A token server in memory whose user alice has a PIN, and can have the custom authenticators "number" and "touch".
/// Its script accepts the data "4711", refuses "5000" for good, and other data for now.
final class MemoryServer: Sendable {
  static let id = TokenServerID("memory.example")
  static let account = AccountID("alice")
  static let rightPIN = "13589"
  static let welcome = AuthenticatorInfo(status: 2000, data: "welcome")

  struct State {
    var registered: Set<String> = []
    var preferred: String?
    var wrongPINs = 0
    /// The requests by their authenticators.
    var pending: [TransactionID: String] = [:]
    var outcomes: [TransactionID: RemoteState] = [:]
    /// What was received besides: data with the use, and denials with the underlying error.
    var calls: [String] = []
    var isReachable = true
  }

  private let state = Mutex(State())

  var now: State { state.withLock { $0 } }
  func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

  /// Starts a request for an authenticator.
  func ask(for authenticator: String) -> TransactionID {
    state.withLock { state in
      let transaction = TransactionID(numberedUUID(state.pending.count + state.outcomes.count + 1))!
      state.pending[transaction] = authenticator
      return transaction
    }
  }

  func answer(_ transaction: TransactionID, _ outcome: RemoteState) {
    change { state in
      state.pending[transaction] = nil
      state.outcomes[transaction] = outcome
    }
  }

  func requireReachable() throws(TokenServerError) {
    guard now.isReachable else { throw .unreachable("no network in this test") }
  }

  /// What the script for the authenticator says.
  /// - Throws: `.authenticatorFailed`.
  func run(_ step: String, _ authenticator: String, _ data: AuthenticatorData) throws(TokenServerError)
    -> AuthenticatorInfo
  {
    let text = data.bytes.withExposedSecret { String(decoding: $0, as: UTF8.self) }
    change { $0.calls.append("\(step) \(authenticator) with \(text)") }
    guard text != "4711" else { return Self.welcome }
    let isFinal = text == "5000"
    if isFinal { change { $0.registered.remove(authenticator) } }
    throw .authenticatorFailed(
      AuthenticatorFailure(
        number: 9027, reason: "the script refuses",
        info: AuthenticatorInfo(status: isFinal ? 5000 : 4000, data: "not this one"), isRevoked: isFinal))
  }

  /// - Throws: `.pinIncorrect`.
  func check(_ pin: PIN) throws(TokenServerError) {
    let isRight = pin == PIN(EnteredDigits(typing: Self.rightPIN))
    change { $0.wrongPINs = isRight ? 0 : $0.wrongPINs + 1 }
    guard isRight else { throw .pinIncorrect(counts) }
  }

  var counts: FailureCounts { FailureCounts(max: 3, previous: now.wrongPINs) }

  /// What the user has or could register.
  var authenticators: [Authenticator] {
    let state = now
    let preferred = state.preferred.flatMap { state.registered.contains($0) ? $0 : nil }
    let others = [("number", "Employee number"), ("touch", "Touch")].map { id, name in
      Authenticator(
        identifier: id, name: name, kind: .custom, isRegistered: state.registered.contains(id),
        isPreferred: preferred == id, isSupported: true)
    }
    return [
      Authenticator(
        identifier: "pin", name: "PIN", kind: .pin, isRegistered: true, isPreferred: preferred == nil, isSupported: true
      )
    ] + others
  }

  fileprivate static let all = Mutex<[String: MemoryServer]>([:])

  /// Makes a server that `MemoryBackend` finds under its address.
  static func make() -> (server: MemoryServer, url: String) {
    all.withLock { all in
      let (server, url) = (MemoryServer(), "memory:\(all.count)")
      all[url] = server
      return (server, url)
    }
  }
}

/// The kind of server of `MemoryServer`.
struct MemoryBackend: ServerBackend {
  static let kind = "memory"
  static let displayName = "memory"
  static let uriPrefixes = ["memory:"]

  private let context: BackendContext

  init(_ context: BackendContext) { self.context = context }

  static func recognizes(_ uri: String) -> Bool { uri.hasPrefix("memory:") }
  static func form(of uri: String) throws -> EnrollmentForm { EnrollmentForm() }

  func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    let server = TokenServerRecord(
      id: MemoryServer.id, kind: Self.kind, url: request.uri, registration: context.environment.makeEnrollmentID(),
      secrets: SecretBytes(copying: []))
    let account = AccountRecord(
      id: MemoryServer.account, server: server.id, profile: "PROFIL", stage: .active,
      enrollment: context.environment.makeEnrollmentID(), secrets: SecretBytes(copying: []))
    try context.store.put(server)
    try context.store.put(account, context.environment.auditEntry(.enrolled, account: account.id))
    return account
  }

  func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? {
    guard let memory = MemoryServer.all.withLock({ $0[server.url] }) else { return nil }
    return MemoryServerClient(
      server: memory, enrollments: Enrollments(server, accounts), drivers: context.drivers, environment: environment)
  }
}
