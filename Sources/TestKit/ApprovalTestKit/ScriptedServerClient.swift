// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets
import Synchronization

/// A token server client without a network. The test sets its list of requests and its responses.
package final class ScriptedServerClient: TokenServerClient {
  private struct State {
    var list: [PendingMobileAuthRequest] = []
    var faults: [String: [TokenServerError]] = [:]
    var broken: [String: TokenServerError] = [:]
    var hanging: Set<String> = []
    var gates: [String: Gate] = [:]
    var validation = Validation()
    var status: [TransactionID: RemoteStatus] = [:]
    var delivered: [SealedResponse] = []
    var denials: [UnopenedDenial] = []
    var pins: [PIN] = []
    var choices: [String?] = []
    var revoked: [String] = []
    var data: [AuthenticatorData] = []
    var code: PortalCode?
    var info: AuthenticatorInfo?
    var challenge = Challenge.confirmation
    var texts: VerifiedTexts?
    var readBack: EnteredDigits?
    var typedBack: [EnteredDigits?] = []
    var hints: AsyncThrowingStream<Hint, any Error>.Continuation?
    var calls: [String: Int] = [:]
    var repeated: [[UInt8]] = []
    var resentAfterRestart = false
    var sealsWithoutDeciding = false
  }

  package let id: TokenServerID
  private let state = Mutex(State())

  package let enrollments: Enrollments

  /// - Parameter accounts: the accounts with their enrollments.
  package init(
    _ id: String = "token.example", registration: String = "registration",
    accounts: [String: String] = ["A": "enrollment of A", "B": "enrollment of B"]
  ) {
    self.id = TokenServerID(id)
    enrollments = Enrollments(
      server: EnrollmentID(registration),
      accounts: Dictionary(uniqueKeysWithValues: accounts.map { (AccountID($0), EnrollmentID($1)) }))
  }

  /// Every answer delivered, including repeated deliveries.
  package var delivered: [SealedResponse] { state.withLock { $0.delivered } }
  /// Every denial of a request that could not be opened, including repeated ones.
  package var denials: [UnopenedDenial] { state.withLock { $0.denials } }
  /// The body of every answer that was resent after a restart.
  package var repeated: [[UInt8]] { state.withLock { $0.repeated } }
  /// From now on answers are sealed with `isResentAfterRestart`: their outcome is unknown, so their bodies are stored
  /// for resending.
  package func resentAfterRestart() { state.withLock { $0.resentAfterRestart = true } }
  package var sealsWithoutDeciding: Bool {
    get { state.withLock { $0.sealsWithoutDeciding } }
    set { state.withLock { $0.sealsWithoutDeciding = newValue } }
  }

  /// Every PIN that was used to seal an answer.
  package var pins: [PIN] { state.withLock { $0.pins } }

  /// The data of every custom authenticator that was used to seal an answer.
  package var data: [AuthenticatorData] { state.withLock { $0.data } }

  /// The authenticators whose registrations ended, with account and reason.
  package var revoked: [String] { state.withLock { $0.revoked } }

  /// The choice in each sealed answer.
  package var choices: [String?] { state.withLock { $0.choices } }

  /// Sets the portal code that later verdicts contain.
  package func set(code: PortalCode?) { state.withLock { $0.code = code } }

  /// Sets the result of the server's script that later verdicts contain.
  package func set(info: AuthenticatorInfo?) { state.withLock { $0.info = info } }

  /// Sets the signed texts of requests that are opened later.
  package func set(texts: VerifiedTexts?) { state.withLock { $0.texts = texts } }

  /// Sets the digits that users must type for requests that are opened later.
  package func set(readBack: EnteredDigits?) { state.withLock { $0.readBack = readBack } }

  /// The digits typed for each sealed answer because its request has some.
  package var typedBack: [EnteredDigits?] { state.withLock { $0.typedBack } }

  /// Sets the challenge of later requests.
  package func set(challenge: Challenge) { state.withLock { $0.challenge = challenge } }

  package func set(list: [PendingMobileAuthRequest]) { state.withLock { $0.list = list } }
  package func set(validation: Validation) { state.withLock { $0.validation = validation } }
  package func set(status: RemoteStatus, of transaction: TransactionID) {
    state.withLock { $0.status[transaction] = status }
  }

  /// Lets the next calls of that name throw these faults, one per call.
  package func fail(_ call: String, _ faults: TokenServerError...) {
    state.withLock { $0.faults[call, default: []] += faults }
  }

  /// Lets every call of that name throw this fault, until `mend`.
  package func breakDown(_ call: String, _ fault: TokenServerError) { state.withLock { $0.broken[call] = fault } }
  package func mend(_ call: String) { state.withLock { $0.broken[call] = nil } }

  /// Lets every call of that name wait until it is canceled.
  package func hang(_ call: String) { state.withLock { _ = $0.hanging.insert(call) } }
  package func hang(opening transaction: TransactionID) { hang("open \(transaction)") }

  /// Lets the next call of that name wait at a gate: a list is then that of the moment of the call.
  package func hold(_ call: String) -> Gate {
    let gate = Gate()
    state.withLock { $0.gates[call] = gate }
    return gate
  }

  package func hint(_ hint: Hint) { state.withLock { _ = $0.hints?.yield(hint) } }
  package func breakStream(_ fault: TokenServerError) { state.withLock { $0.hints?.finish(throwing: fault) } }
  package func calls(of name: String) -> Int { state.withLock { $0.calls[name, default: 0] } }

  package func validate() async throws(TokenServerError) -> Validation {
    try await take("validate")
    return state.withLock { $0.validation }
  }

  package func hints() -> AsyncThrowingStream<Hint, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: Hint.self)
    state.withLock { $0.hints = continuation }
    continuation.yield(.connected)
    return stream
  }

  package func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    let list = state.withLock { $0.list }
    try await take("pendingRequests")
    return list
  }

  package func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    try await take("open", pending.transaction)
    return try pending.opened(
      VerifiedContents(
        transaction: pending.transaction, account: pending.account, type: "login",
        texts: state.withLock { $0.texts }, challenge: state.withLock { $0.challenge },
        readBack: state.withLock { $0.readBack }, answerContext: []))
  }

  package func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    state.withLock { state in
      if let pin = response.pin { state.pins.append(pin) }
      if let data = response.data { state.data.append(data) }
      state.choices.append(response.choice)
      state.typedBack.append(response.readBack)
    }
    try await take("seal")
    let isResentAfterRestart = state.withLock { $0.resentAfterRestart }
    return response.sealed(
      Array(response.idempotencyKey.utf8), isResentAfterRestart: isResentAfterRestart)
  }

  package func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    state.withLock { $0.delivered.append(response) }
    try await take("deliver")
    return try response.verdict(
      response.decision == .accept ? .authenticated : .rejected, receipt: "receipt-1", code: state.withLock { $0.code },
      info: state.withLock { $0.info })
  }

  package func deny(
    unopened pending: PendingMobileAuthRequest, because why: String, idempotencyKey: String
  ) async throws(TokenServerError) {
    let denial = UnopenedDenial(transaction: pending.transaction, why: why, idempotencyKey: idempotencyKey)
    state.withLock { $0.denials.append(denial) }
    try await take("deny")
  }

  package func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerError) -> RemoteStatus
  {
    try await take("status")
    guard let status = state.withLock({ $0.status[transaction] }) else { throw .requestNotFound }
    return status
  }

  package func resend(_ intent: AnswerIntent, _ body: [UInt8]) async throws(TokenServerError) -> RemoteStatus {
    state.withLock { $0.repeated.append(body) }
    try await take("repeated")
    guard let status = state.withLock({ $0.status[intent.transaction] }) else { throw .requestNotFound }
    return status
  }

  package func revoke(_ authenticator: String, of account: AccountID, because why: String) {
    state.withLock { $0.revoked.append("\(authenticator) of \(account): \(why)") }
  }

  package func requestDidEnd(_ transaction: TransactionID) { state.withLock { $0.calls["ended", default: 0] += 1 } }

  private func take(_ call: String, _ transaction: TransactionID? = nil) async throws(TokenServerError) {
    let (isHanging, gate) = state.withLock { state in
      state.calls[call, default: 0] += 1
      let isHanging =
        state.hanging.contains(call) || transaction.map { state.hanging.contains("\(call) \($0)") } ?? false
      return (isHanging, state.gates.removeValue(forKey: call))
    }
    if let gate { await gate.pass() }
    if isHanging {
      try? await Task.sleep(for: .seconds(3600))
      throw .unreachable("canceled")
    }
    let fault: TokenServerError? = state.withLock { state in
      guard var faults = state.faults[call], !faults.isEmpty else { return state.broken[call] }
      let fault = faults.removeFirst()
      state.faults[call] = faults
      return fault
    }
    if let fault { throw fault }
  }
}

/// A denial of a request that could not be opened.
package struct UnopenedDenial: Equatable, Sendable {
  package let transaction: TransactionID
  package let why: String
  package let idempotencyKey: String

  package init(transaction: TransactionID, why: String, idempotencyKey: String) {
    self.transaction = transaction
    self.why = why
    self.idempotencyKey = idempotencyKey
  }
}
