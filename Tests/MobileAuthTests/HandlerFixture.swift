// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// One token with an account at each of three scripted servers, and a manual clock.
final class HandlerFixture: Sendable {
  let clock: ManualClock
  let server = ScriptedServerClient()
  let otherServer = ScriptedServerClient("other.example")
  let thirdServer = ScriptedServerClient("third.example")
  let panel: ScriptedPanel
  let stateStore = MemoryStateStore()
  let inbox: Inbox
  let panelTasks: PanelTaskQueue
  let handler: Handler
  let events = RecordedEvents()
  let environment: TokenEnvironment

  init(
    wallClockMilliseconds: Int64 = 1_790_000_000_000, canType: Bool = true,
    drivers: AuthenticatorDrivers = AuthenticatorDrivers()
  ) {
    clock = ManualClock(wallClockMilliseconds: wallClockMilliseconds)
    panel = ScriptedPanel(canType: canType, clock: clock)
    environment = .test(clock, recordingIn: events)
    inbox = Inbox(in: environment)
    panelTasks = PanelTaskQueue(changes: inbox.changes)
    handler = Handler(
      servers: [server, otherServer, thirdServer], inbox: inbox, panelTasks: panelTasks, drivers: drivers, panel: panel,
      stateStore: stateStore, mustEnroll: false, in: environment)
  }

  /// Adds these requests to the list, as a refresh would, with the server connected.
  func announce(_ requests: PendingMobileAuthRequest...) {
    announce(requests, by: server)
  }

  /// Like `list`, for the second server.
  func announceElsewhere(_ requests: PendingMobileAuthRequest...) { announce(requests, by: otherServer) }

  func announce(_ requests: [PendingMobileAuthRequest], by server: ScriptedServerClient) {
    server.set(list: requests)
    inbox.connectivity.set(.connected, to: server.id)
    inbox.replace(requestsOf: server.id, with: requests)
  }

  /// Advances the clock in small steps until the condition holds. Records an issue if it does not hold after 60 s of
  /// real time.
  func pass(
    sourceLocation: SourceLocation = #_sourceLocation, until isDone: () throws -> Bool
  ) async rethrows {
    let deadline = ContinuousClock.now + .seconds(60)
    while try !isDone() {
      guard ContinuousClock.now < deadline else {
        Issue.record("the condition does not hold after 60 s", sourceLocation: sourceLocation)
        return
      }
      // A handler that has nothing left to do does not sleep.
      if clock.hasSleepers { await advance() }
      for _ in 0..<100 { await Task.yield() }
    }
  }

  /// Advances the clock by half a second, and leaves the tasks that this wakes time to act.
  private func advance() async {
    let sleeping = clock.sleeping
    let wakesOne = clock.untilNextWakes.map { $0 <= .milliseconds(500) } ?? false
    clock.advance(by: .milliseconds(500))
    // They have acted when as many sleep again; one that does not sleep again costs this time.
    if wakesOne {
      _ = try? await eventually("as many sleep", within: .milliseconds(50)) { clock.sleeping >= sleeping }
    }
  }

  /// Waits until the condition holds, without advancing the clock. Records an issue if it does not hold after 60 s of
  /// real time.
  ///
  /// Not called inside `#expect`: with swift-testing 6.3.1, `#expect(await turn { !list(1).isEmpty })` has returned at
  /// once in some tests, although the condition did not hold.
  @discardableResult static func turn(
    sourceLocation: SourceLocation = #_sourceLocation, until isDone: () throws -> Bool
  ) async rethrows -> Bool {
    let deadline = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < deadline {
      for _ in 0..<100 {
        if try isDone() { return true }
        await Task.yield()
      }
    }
    let isFinallyDone = try isDone()
    if !isFinallyDone { Issue.record("the condition does not hold after 60 s", sourceLocation: sourceLocation) }
    return isFinallyDone
  }

  /// Runs the handler while `body` runs; no task outlives the call.
  func withHandler(_ body: () async throws -> Void) async throws {
    let running = Task { try await handler.run() }
    defer { running.cancel() }
    try await body()
    running.cancel()
    _ = try? await running.finished()
  }

  /// Runs the handler with the request 1: `body` answers it, from its first challenge until nothing is pending.
  func handlesRequest(_ body: () async throws -> Void) async throws {
    try await withHandler {
      announce(request(1))
      await panel.until(challenges: 1)
      try await body()
      await panel.until(showing: .idle(pending: 0))
    }
  }

  /// Starts a panel task that asks for a PIN of four digits.
  func startPINDialog() -> Task<PIN, any Error> {
    Task { [panelTasks, environment] in
      try await panelTasks.perform { try await PanelDialog($0, in: environment).currentPIN(length: 4) }
    }
  }

  func request(
    _ number: Int, of server: ScriptedServerClient? = nil, sentAt: Int64 = 1000, lives: Duration = .seconds(60)
  ) -> PendingMobileAuthRequest {
    PendingMobileAuthRequest(
      transaction: Self.transaction(number), server: (server ?? self.server).id, account: AccountID("A"),
      sentAtMilliseconds: sentAt,
      timeToLive: lives, message: nil, deadline: clock.now + lives)
  }

  static func transaction(_ number: Int) -> TransactionID {
    TransactionID(numberedUUID(number))!
  }
}

let accept = PanelEvent.gesture(Gesture(.hold, held: .seconds(1)))
let deny = PanelEvent.gesture(Gesture(.doublePress, held: .milliseconds(100)))
let notMe = PanelEvent.gesture(Gesture(.veryLongHold, held: .seconds(7)))
