// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
package import HTTP
package import MobileAuth
import Secrets
package import ServerBackends
import Synchronization

/// The client of one push endpoint of privacyIDEA or eduMFA: implements `TokenServerClient` by polling `/ttype/push`.
package final class PrivacyIDEAServerClient: BiometricChecks {
  struct Account: Sendable {
    let id: AccountID
    let serial: String
    let keys: TokenKeys
    let pinLength: Int?
    let wantsBiometric: Bool
  }

  /// The polling state of one account.
  private struct PollState: Sendable {
    var failures = 0
    var refusals: Refusals?
    var nextPoll: MonotonicInstant
    /// The fault reported last; the same fault is not reported again.
    var trouble: PollError?
    var isGone = false
  }

  /// Refusals in a row.
  private struct Refusals: Sendable {
    var count = 0
    let first: MonotonicInstant
    /// When the server is to be asked whether the token is deleted, if it still refuses then.
    var question: MonotonicInstant
  }

  private struct State {
    var pollStates: [AccountID: PollState] = [:]
    var lastRound: MonotonicInstant?
    var lastOpen: MonotonicInstant
  }

  /// The maximum number of concurrent requests to one server.
  private static let concurrentPolls = 8
  /// A list younger than this is not requested again.
  private static let freshness = Duration.seconds(1)

  package let id: TokenServerID
  package let enrollments: Enrollments
  let accounts: [Account]
  let client: PushClient
  let challenges: ChallengeStore
  let pinVerifier: (any PINVerifier)?
  /// Whether the PIN may be typed where the administrator requires a fingerprint.
  let takesPINForBiometric: Bool
  package let standIns: StandIns?
  let pace: PollingPace
  let environment: TokenEnvironment
  let unconfirmed = UnconfirmedAnswers()
  private let state: Mutex<State>
  private let hinted = ChangeSignal()

  /// - Parameters:
  ///   - accounts: the accounts of this server. Accounts that are not active are ignored.
  ///   - pinVerifier: verifies PINs; nil without a keypad. Accounts that require a PIN can then only deny.
  ///   - environment: receives the events that concern a single account.
  ///   - takesPINForBiometric: whether the PIN replaces a fingerprint that the administrator requires.
  ///   - standIns: what stands for a fingerprint besides the PIN; nil for nothing.
  package init(
    _ record: TokenServerRecord, accounts: [AccountRecord], pinVerifier: (any PINVerifier)?, http: any HTTPTransport,
    in environment: TokenEnvironment, pace: PollingPace = PollingPace(), takesPINForBiometric: Bool = false,
    standIns: StandIns? = nil
  ) throws(StateStoreError) {
    id = record.id
    enrollments = Enrollments(record, accounts)
    var active: [Account] = []
    for record in accounts where record.stage == .active {
      let credentials = try PushCredentials(record)
      guard let keys = credentials.active else { throw .corrupt(.keys(of: record.id)) }
      active.append(
        Account(
          id: record.id, serial: record.profile, keys: keys, pinLength: credentials.pinLength,
          wantsBiometric: credentials.wantsBiometric))
    }
    self.accounts = active
    client = PushClient(endpoint: record.url, http: http, clock: ResponseClock(in: environment))
    challenges = ChallengeStore(of: record.id)
    self.pinVerifier = pinVerifier
    self.takesPINForBiometric = takesPINForBiometric
    self.standIns = standIns
    self.pace = pace
    self.environment = environment
    state = Mutex(State(lastOpen: environment.now))
  }

  package func revoke(_ authenticator: String, of account: AccountID, because why: String) {
    standIns?.revoke(authenticator, of: account, because: why)
  }

  /// Unix seconds by the server's clock, for boards without a clock; nil before the first authenticated response.
  package var serverTime: Int64? { client.clock.vouchedTime }

  /// Returns the accounts that polls have found deleted. The server has no validation request.
  package func validate() async throws(TokenServerError) -> Validation {
    let gone = state.withLock { state in accounts.map(\.id).filter { state.pollStates[$0]?.isGone == true } }
    return Validation(disenrolledAccounts: gone)
  }

  package func hints() -> AsyncThrowingStream<Hint, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingOldest(8)) { continuation in
      let task = Task { [self] in
        do {
          try await follow { continuation.yield($0) }
          continuation.finish()
        } catch { continuation.finish(throwing: error) }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  private func follow(_ yield: @Sendable (Hint) -> Void) async throws {
    state.withLock { $0.lastOpen = environment.now }
    var knownGone = 0
    // A hint that arrives during a round ends the pause after it.
    var seen = hinted.generation
    try await round()
    // A list that an answer or a query has read changes the challenges, too.
    var known = challenges.changes
    yield(.connected)
    // privacyIDEA sends the hint before it stores the challenge: the round after it may come too early.
    var isEarly = false
    while true {
      let quiet = environment.now - state.withLock { $0.lastOpen }
      let interval = pace.interval(quiet: quiet, random: environment.random())
      let next = environment.now + (isEarly ? min(PollingPace.afterHint, interval) : interval)
      try await hinted.wait(beyond: seen, until: next, in: environment)
      let isHinted = hinted.generation != seen
      seen = hinted.generation
      try await round()
      let changes = challenges.changes
      isEarly = isHinted && changes == known
      if changes != known { yield(.pendingChanged) }
      known = changes
      let gone = state.withLock { state in state.pollStates.values.filter(\.isGone).count }
      if gone > knownGone { yield(.revoked) }
      knownGone = gone
    }
  }

  /// Ends the pause before the next round, which is repeated once if it finds nothing new. Accounts in backoff keep
  /// waiting.
  package func wake() { hinted.raise() }

  package func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    let lastRound = state.withLock { $0.lastRound }
    if lastRound.map({ environment.now - $0 > Self.freshness }) ?? true { try await round() }
    return challenges.entries.map { transaction, entry in
      let challenge = entry.challenge
      let summary = RequestSummary(type: challenge.title.sanitized, choices: choice(of: entry))
      return PendingMobileAuthRequest(
        transaction: transaction, server: id, account: entry.account, sentAtMilliseconds: entry.seenAtMilliseconds,
        timeToLive: pace.lifetime, message: challenge.message, summary: summary,
        deadline: entry.firstSeen + pace.lifetime
      )
    }.sorted(by: PendingMobileAuthRequest.newestFirst)
  }

  // MARK: Polls

  /// Polls the accounts that are due.
  /// - Throws: if the last poll of every account failed because of the server. `RequestListener` then decides when they
  ///   are polled again, except those that must not poll.
  private func round() async throws(TokenServerError) {
    let now = environment.now
    let due = state.withLock { state in
      accounts.filter { account in
        guard let standing = state.pollStates[account.id] else { return true }
        return !standing.isGone && standing.nextPoll <= now
      }
    }
    for batch in stride(from: 0, to: due.count, by: Self.concurrentPolls) {
      await withTaskGroup(of: Void.self) { group in
        for account in due[batch..<min(batch + Self.concurrentPolls, due.count)] {
          group.addTask { await self.poll(account) }
        }
      }
    }
    let fault = state.withLock { state -> TokenServerError? in
      state.lastRound = environment.now
      let kept = accounts.map(\.id).filter { state.pollStates[$0]?.isGone != true }
      let faults = kept.compactMap { state.pollStates[$0]?.trouble }.compactMap { TokenServerError(everywhere: $0) }
      guard faults.count == kept.count else { return nil }
      for id in kept {
        if case .forbidden = state.pollStates[id]?.trouble { continue }
        state.pollStates[id]?.nextPoll = now
      }
      // After this one the listener waits longer: only if it is that of all.
      return faults.first { if case .switchedOff = $0 { false } else { true } } ?? faults.first
    }
    if let fault { throw fault }
  }

  /// - Returns: why the poll failed; nil if it did not.
  @discardableResult func poll(_ account: Account) async -> PollError? {
    let asksIfRefused = isQuestionDue(of: account.id)
    let number = challenges.nextList()
    do throws(PollError) {
      let list = try await client.poll(
        serial: account.serial, key: account.keys.device, onNewConnection: asksIfRefused)
      if let drift = list.correctedClock {
        environment.report(.trouble(account.id, "\(PollError.clock(drift)); corrected"))
      }
      let now = environment.now
      let verified = challenges.verify(
        list.elements, of: account.id, serial: account.serial, key: account.keys.server, now: now,
        serverMilliseconds: client.clock.now ?? 0)
      if let parseError = challenges.replace(with: verified, number: number) {
        environment.report(.trouble(account.id, parseError))
      }
      let isQuiet = challenges.entries.isEmpty
      state.withLock { state in
        state.pollStates[account.id] = nil
        if !isQuiet { state.lastOpen = now }
      }
      return nil
    } catch {
      var isDeleted: Bool?
      if asksIfRefused, error == .notKnown {
        isDeleted = await client.isDeleted(
          serial: account.serial, key: account.keys.device, nonce: environment.makeUUID())
      }
      note(error, of: account.id, isDeleted: isDeleted)
      return error
    }
  }

  private func isQuestionDue(of account: AccountID) -> Bool {
    state.withLock { state in
      guard let refusals = state.pollStates[account]?.refusals else { return false }
      return refusals.count >= PollingPace.refusalsBeforeQuestion && environment.now >= refusals.question
    }
  }

  /// - Parameter isDeleted: what the server said when it was asked after a refusal; nil if it was not asked.
  private func note(_ fault: PollError, of account: AccountID, isDeleted: Bool?) {
    let now = environment.now
    let pause = environment.random()
    let isNews = state.withLock { state in
      var standing = state.pollStates[account] ?? PollState(nextPoll: now)
      standing.failures += 1
      var refusals = standing.refusals ?? Refusals(first: now, question: now + pace.untilQuestion)
      standing.refusals = nil
      switch fault {
      case .forbidden: standing.nextPoll = now + PollingPace.refused
      case .notKnown:
        refusals.count += 1
        if isDeleted != nil {
          refusals.question = now + PollingPace.untilNextQuestion(refusedFor: now - refusals.first)
        }
        standing.refusals = refusals
        standing.nextPoll =
          refusals.count < PollingPace.refusalsBeforeQuestion ? now : min(refusals.question, now + PollingPace.refused)
        standing.isGone = standing.isGone || isDeleted == true
      case .misplaced, .clock, .offline:
        standing.nextPoll = now + pace.backOff(failures: standing.failures, random: pause)
      }
      let isNews = standing.trouble != fault
      standing.trouble = fault
      state.pollStates[account] = standing
      return isNews
    }
    if isNews { environment.report(.trouble(account, "\(fault)")) }
  }

  func account(_ id: AccountID) throws(TokenServerError) -> Account {
    guard let account = accounts.first(where: { $0.id == id }) else { throw .notEnrolled }
    return account
  }
}

extension TokenServerError {
  /// The server's fault if every poll failed with this one; nil if the server itself works.
  fileprivate init?(everywhere fault: PollError) {
    switch fault {
    case .offline(let fault): self = fault
    case .forbidden(let why): self = .switchedOff(why)
    case .misplaced, .clock: self = .unreachable("\(fault)")
    case .notKnown: return nil
    }
  }
}

extension PushChallenge {
  /// Some servers shorten a long question to nothing, and the title with it.
  fileprivate var message: String {
    String(([question, title].map(\.sanitized).first { !$0.isEmpty } ?? "Log in?").prefix(155))
  }
}
