// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Synchronization

/// Operations over storage in memory, with two kinds of servers: one with every capability that operations ask for,
/// and one with none.
final class OperationsFixture: Sendable {
  let store = MemoryStore()
  let clock = ManualClock()
  let events = RecordedEvents()
  let panel = ScriptedPanel()
  let users = RecordingUserState()
  let reader = ScriptedDriver("reader")
  let badge = ScriptedDriver("badge", hold: true)
  let fingerprintReader = ScriptedDriver("finger", kind: .biometric)

  static let able = TokenServerID("able.example")
  static let plain = TokenServerID("plain.example")

  init() throws {
    for (id, kind) in [(Self.able, AbleBackend.kind), (Self.plain, PlainBackend.kind)] {
      try store.put(
        TokenServerRecord(id: id, kind: kind, url: "https://\(id)", secrets: SecretBytes(copying: [])))
    }
  }

  var environment: TokenEnvironment { .test(clock, recordingIn: events) }

  var context: BackendContext {
    var context = BackendContext(store: store, in: environment, earliestNow: 0) { _ in
      RecordingHTTPTransport { _ throws(HTTPTransportError) in throw .unreachable("no network in this test") }
    }
    context.board = BoardCapabilities(hasKeypad: true, hasColorLED: true)
    context.drivers = AuthenticatorDrivers([
      KeypadCodeDriver("number"), reader, badge, FingerprintDriver(fingerprintReader),
    ])
    return context
  }

  var operations: AccountOperations { AccountOperations(context, kinds: [AbleBackend.self, PlainBackend.self]) }
  var pins: AccountPINs { AccountPINs(context, users) }

  @discardableResult func account(
    _ name: String, at server: TokenServerID = OperationsFixture.able, stage: EnrollmentStage = .active,
    _ change: (inout AccountRecord) -> Void = { _ in }
  ) throws -> AccountRecord {
    var account = AccountRecord(
      id: AccountID(name), server: server, profile: "P-\(name)", stage: stage, secrets: SecretBytes(copying: [1]))
    change(&account)
    try store.put(account, nil)
    return account
  }

  /// Lets the guard time pass, and the pause after a failure, until a driver was asked this number of times. The clock
  /// stands still while tasks sleep only until the time limit of a prompt: on a busy machine it would reach that before
  /// the driver is asked.
  func untilAsked(_ driver: ScriptedDriver, times: Int) async throws {
    try await eventually("\(driver.authenticator) is asked") {
      if driver.calls.count >= times { return true }
      if let wait = clock.untilNextWakes, wait <= .seconds(1) { clock.advance(by: .milliseconds(500)) }
      return false
    }
  }

  /// Enters the digits, each at its own prompt.
  func enter(_ entries: String...) async {
    for (number, digits) in entries.enumerated() {
      await panel.until(challenges: number + 1)
      panel.perform(.typed(digits))
    }
  }
}

func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

/// What a service would remember and log.
final class RecordingUserState: UserState {
  private struct State {
    var session: UserSession?
    var calls: [String] = []
  }

  private let state = Mutex(State())

  var session: UserSession? { state.withLock { $0.session } }
  var calls: [String] { state.withLock { $0.calls } }

  func set(_ session: UserSession?) { state.withLock { $0.session = session } }
  func note(_ counts: FailureCounts, of account: AccountID) { add("\(account): \(counts.previous) of \(counts.max)") }
  func failureCounts(of account: AccountID) -> FailureCounts? { nil }
  func noteRightPIN(of account: AccountID) { add("\(account): right") }
  func noteLoss(of account: AccountID) { add("\(account): lost") }
  func log(_ entry: AuditEntry) { add("log \(entry.kind.rawValue)") }
  func reload() { add("reload") }

  private func add(_ call: String) { state.withLock { $0.calls.append(call) } }
}

/// A kind of server without any optional capability.
struct PlainBackend: ServerBackend {
  static let kind = "plain"
  static let displayName = "Plain"
  static let uriPrefixes = ["plain:"]

  static func recognizes(_ uri: String) -> Bool { false }
  static func form(of uri: String) throws -> EnrollmentForm { EnrollmentForm() }

  init(_ context: BackendContext) {}

  func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord { throw BackendError(.usage, "not used") }
  func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? { nil }
}

/// A kind of server whose accounts have locks, messages and mailboxes.
struct AbleBackend: AccountLocks, MessageHistory, MailboxAddressing {
  static let kind = "able"
  static let displayName = "Able"
  static let uriPrefixes = ["able:"]
  static let locksWithPolicy = true

  static func recognizes(_ uri: String) -> Bool { false }
  static func form(of uri: String) throws -> EnrollmentForm { EnrollmentForm() }
  static func rule(brokenByMailbox text: String) -> String? { nil }

  init(_ context: BackendContext) {}

  func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord { throw BackendError(.usage, "not used") }
  func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? { nil }

  func summary(
    of message: DeliveredMessage, for account: AccountRecord, now: Int64
  ) throws(StateStoreError) -> MessageSummary {
    MessageSummary(
      transaction: message.transaction, account: account.id, receivedAtMilliseconds: message.receivedAtMilliseconds,
      state: now - message.receivedAtMilliseconds > 60_000 ? .expired : message.state, type: nil, pushType: nil,
      message: nil, context: nil)
  }

  func accept(_ message: [UInt8]) throws -> PushAcceptance { throw BackendError(.badData, "not used") }
  func isFinal(_ message: [UInt8]) -> Bool { true }
  func mailboxes() throws(StateStoreError) -> Set<String> { [] }
  func set(channelFault: String?, of mailbox: String) {}
  func check(mailbox: String, for account: AccountID) throws {
    if mailbox == "taken" { throw BackendError(.usage, "taken") }
  }
}
