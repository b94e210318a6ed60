// SPDX-License-Identifier: Apache-2.0
import Boards
import ControlProtocol
import Cryptography
import DisplayText
import FrontPanel
import Glibc
import JSONValues
import MobileAuth
import ServerBackends
import Vault

/// Handles the requests of the control socket.
struct ControlRequestHandler: Sendable {
  let service: TokenService
  let backends: Backends
  let board: RunningBoard
  let accounts: AccountService
  /// The socket of the process that uses the network; nil if this one does.
  var networkSocket: String?

  private var vault: Vault { backends.vault }

  func answer(
    _ request: ControlRequest, _ reply: @escaping @Sendable (any Encodable & Sendable) throws -> Void
  ) async throws {
    // A write error here is ignored: a disconnected client is detected when the answer is written.
    let progress: AccountService.Progress = { try? reply(ControlProgress($0)) }
    switch request {
    case .status: try reply(try await status())
    case .pending:
      try reply(
        PendingResponse(
          requests: try await summaries(of: pending(without: vault.unresolvedIntents())), unreachable: unreachable,
          number: unreachable.first.map(number(ofUnreachable:))))
    case .selfTest: try reply(try await selfTest.run())
    case .reload:
      service.reload()
      try reply(Done())
    case .enroll(let options): try reply(try await accounts.enroll(options, progress))
    case .enrollAgain(let account): try reply(try await accounts.enrollAgain(account, progress))
    case .disenroll(let account, let pushOnly): try reply(try await accounts.disenroll(account, pushOnly: pushOnly))
    case .push(let message): try reply(try take(message))
    case .logIn(let account, let id): try reply(try await accounts.logIn(account, with: id, progress))
    case .authenticators(let account): try reply(try await accounts.authenticators(account))
    case .registerAuthenticator(let account, let id):
      try reply(try await accounts.registerAuthenticator(id, of: account, progress))
    case .deregisterAuthenticator(let account, let id):
      try reply(try await accounts.deregisterAuthenticator(id, of: account, progress))
    case .preferAuthenticator(let account, let id): try reply(try await accounts.preferAuthenticator(id, of: account))
    case .logOut: try reply(try await accounts.logOut())
    case .oneTimePassword(let account): try reply(try await accounts.oneTimePassword(account, progress))
    case .changePIN(let account): try reply(try await accounts.changePIN(account, progress))
    case .forget(let account): try reply(try await accounts.forget(account, progress))
    case .factoryReset:
      let response = try await accounts.factoryReset(progress)
      defer { accounts.endService() }
      try reply(response)
    case .simulate(let input): try reply(Done(ignored: try await simulate(input)))
    case .led: try reply(await board.led)
    case .watch: try await watch(reply)
    case .events(true): for await line in service.publisher.following() { try reply(line) }
    case .events(false): for line in service.publisher.past { try reply(line) }
    case .show(let transaction): try reply(show(transaction))
    case .call(let call): for line in ResourceReply.lines(of: try await accounts.call(call)) { try reply(line) }
    case .allow(let account, let origin): try reply(try await accounts.allow(account, origin, progress))
    case .disallow(let account, let origin): try reply(try accounts.disallow(account, origin))
    case .followLED: try await followLED(reply)
    case .followBoard: try await followBoard(reply)
    case .pressButton(let button): try await press(button, reply)
    case .releaseButton(let milliseconds): try reply(Done(ignored: try release(heldFor: milliseconds)))
    }
  }

  private var selfTest: SelfTest {
    SelfTest(subject: service, panel: board.panel, environment: backends.environment) { [vault] in
      _ = (try vault.accountSummaries(), try vault.unresolvedIntents())
    }
  }

  /// - Returns: why the input was ignored; nil if it may have had an effect.
  private func simulate(_ input: SimulatedInput) async throws -> String? {
    switch input {
    case .hold(let milliseconds):
      guard (1...60_000).contains(milliseconds) else {
        throw CommandError(.usage, "a hold takes 0.001 to 60 seconds")
      }
      return try await press { try await $0.hold(for: .milliseconds(milliseconds)) }
    case .notMe:
      let duration = board.profile.timing.reportHold + .milliseconds(200)
      return try await press { try await $0.hold(for: duration) }
    case .doublePress: return try await press { try await $0.doublePress() }
    case .keys(let names):
      let ignored = await ignored
      return try await press(names) ? ignored : "the keypad is unplugged"
    case .authenticator(let answer): return try simulate(answer)
    case .chip(let isConnected):
      let button = try board.simulatedButton
      if isConnected { button.plugIn() } else { button.unplug() }
      board.indicator.set(isConnected: isConnected)
      return nil
    }
  }

  /// Why a press or key that begins now is ignored; nil if it is accepted.
  var ignored: String? {
    get async {
      let readiness = await board.panel.readiness
      return readiness == .counts ? nil : readiness.rawValue
    }
  }

  private var panelStatus: PanelStatus {
    get async {
      let ignored = await ignored
      let shown = service.shown.request
      return PanelStatus(
        request: shown?.pending.transaction.text, pressCounts: ignored == nil, reason: ignored,
        obstacle: shown?.contents.challenge.obstacle?.sanitized(atMost: 500))
    }
  }

  /// Disconnected servers, whose request lists may be out of date.
  private var unreachable: [String] {
    service.connections.filter { $0.value != .connected }.map(\.key.text).sorted()
  }

  /// Number of the error catalog for a disconnected server; before the first attempt, that of one that cannot be
  /// reached.
  private func number(ofUnreachable server: String) -> Int {
    let fault = service.faults.first { $0.key.text == server }?.value
    return (fault ?? .unreachable("")).number
  }

  private func summaries(of requests: [PendingMobileAuthRequest]) async -> [PendingSummary] {
    let (panel, unreachable) = (await panelStatus, Set(unreachable))
    let shown = service.shown.request
    return requests.map { request in
      var summary = PendingSummary(request, shown, now: backends.environment.now)
      summary.isOnPanel = panel.request == summary.transaction
      summary.pressCounts = summary.isOnPanel && panel.pressCounts
      summary.obstacle = summary.isOnPanel ? panel.obstacle : nil
      summary.isStale = unreachable.contains(summary.server)
      return summary
    }
  }

  private func take(_ message: String) throws -> PushResponse {
    switch try backends.accept(Array(message.utf8)) {
    case .stored(let account): PushResponse(account: account.text, isKnown: false)
    case .known(let account): PushResponse(account: account.text, isKnown: true)
    }
  }

  /// Presses all keys or none: an unknown key name must not leave the keys before it typed. Returns when the panel has
  /// received them, or after one second.
  /// - Returns: false if the keypad was unplugged at one of them.
  private func press(_ names: [String]) async throws -> Bool {
    let keypad = try board.simulatedKeypad
    guard names.count <= 64 else { throw CommandError(.usage, "at most 64 keys at once") }
    let actions = try names.map { name in
      guard let action = SimulatedKeypad.Action(name) else {
        throw CommandError(.usage, "no key \"\(name)\"; there are: \(SimulatedInput.keyNames)")
      }
      return action
    }
    let former = await board.panel.keypadEvents
    let pause = Duration.milliseconds(20)
    var count = 0
    for action in actions {
      if keypad.perform(action) { count += 1 }
      // Paced like fast typing: the panel drops keys that arrive faster than it handles them.
      try await backends.environment.sleep(for: pause)
    }
    for _ in 1...50 {
      guard await board.panel.keypadEvents - former < count else { break }
      try await backends.environment.sleep(for: pause)
    }
    board.indicator.announce()
    return count == actions.count
  }

  private func status() async throws -> ServiceStatus {
    let accounts = try vault.accountSummaries()
    let unconfirmed = try vault.unresolvedIntents()
    let pending = pending(without: unconfirmed)
    var status = ServiceStatus(
      running: true, accounts: accounts.count, mustEnroll: accounts.filter { $0.stage == .mustEnrollAgain }.count)
    status.processID = getpid()
    status.board = board.profile.name
    status.isSimulated = board.profile.kind == .simulated
    status.isNetworkSeparate = networkSocket != nil
    status.networkSocket = networkSocket
    status.isStopping = service.answer.isStopping
    status.troubles = await board.panel.troubles
    status.led = await board.led
    status.servers = service.connections.map { .init(server: $0.key.text, connection: $0.value.rawValue) }
      .sorted { $0.server < $1.server }
    status.pins = accounts.compactMap { account in
      service.failureCounts[account.id].map { ServiceStatus.PIN(account.id, $0) }
    }
    status.loggedIn = service.session?.account.text
    status.pending = pending.count
    status.requests = await summaries(of: pending)
    status.panel = await panelStatus
    status.lost = service.lostAccounts.map(\.text)
    status.codes = service.codes.map {
      .init(
        account: $0.account.text, transaction: $0.transaction.text, code: $0.code.digits, message: $0.code.message,
        receivedAtMilliseconds: $0.receivedAtMilliseconds,
        expiresInSeconds: ($0.until - self.accounts.environment.now).milliseconds / 1000)
    }
    status.unconfirmed = unconfirmed.map {
      .init(transaction: $0.transaction.text, account: $0.account.text, server: $0.server.text)
    }
    return status
  }

  /// Pending requests without those that are already answered and only wait for the server's confirmation.
  private func pending(without unconfirmed: [AnswerIntent]) -> [PendingMobileAuthRequest] {
    service.pending.filter { request in !unconfirmed.contains { $0.transaction == request.transaction } }
  }
}

extension ServiceStatus.PIN {
  init(_ account: AccountID, _ counts: FailureCounts) {
    self.init(
      account: account.text, maxFailureCount: counts.max, previousFailureCount: counts.previous,
      remainingFailureCount: counts.remaining)
  }
}

extension PendingSummary {
  init(_ request: PendingMobileAuthRequest, now: MonotonicInstant) {
    self.init(
      transaction: request.transaction.text, account: request.account.text, server: request.server.text,
      expiresInSeconds: max(0, (request.deadline - now).components.seconds))
    type = request.summary.type
    pushType = request.summary.pushType
    numbers = request.summary.numbers
    message = request.message
    choices = request.summary.choices.map { challenge in
      zip(challenge.keys, challenge.options).map { Choice(key: $0, option: $1.sanitized) }
    }
    locked = request.blockedBy?.lock
    context = request.summary.origin.map(JSONValue.init(textOrJSON:))
    payload = request.summary.payload.map(JSONValue.init(textOrJSON:))
    sentAtMilliseconds = request.sentAtMilliseconds
    timeToLiveSeconds = request.timeToLive.components.seconds
  }
}
