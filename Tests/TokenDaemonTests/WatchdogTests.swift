// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import Glibc
import MobileAuth
import Synchronization
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct WatchdogTests {
  /// A request handler that waits, and that a test can stop.
  private final class Loop: WatchdogSubject {
    let state = Mutex(HandlerState.waiting(1))
    let reacts = Mutex(true)

    var handlerState: HandlerState { state.withLock { $0 } }
    func endWait() {
      guard reacts.withLock({ $0 }) else { return }
      state.withLock { if case .waiting(let number) = $0 { $0 = .waiting(number + 1) } }
    }
  }

  private final class Count: Sendable {
    let value = Mutex(0)
    var now: Int { value.withLock { $0 } }
    func increase() { value.withLock { $0 += 1 } }
  }

  /// Runs a watchdog on a manual clock. `body` gets a function that lets one interval pass, and returns the number of
  /// reports.
  private func watch(_ subject: some WatchdogSubject, _ body: (() async -> Int) async throws -> Void) async throws {
    let (clock, count, fixture) = (ManualClock(), Count(), try ServiceFixture())
    let watchdog = Watchdog(
      interval: .seconds(60), environment: .test(clock), subject: subject, panel: fixture.board.panel
    ) { count.increase() }
    let running = Task { try await watchdog.run() }
    try await body {
      await clock.untilAsleep()
      clock.advance(by: .seconds(60))
      await clock.untilAsleep()
      return count.now
    }
    running.cancel()
    try await running.finished()
  }

  @Test("A handler that waits is reported") func reports() async throws {
    try await watch(Loop()) { passInterval in
      #expect(await passInterval() == 1)
      #expect(await passInterval() == 2)
    }
  }

  @Test("A handler that works beyond its time limit is no longer reported") func worksForever() async throws {
    let loop = Loop()
    try await watch(loop) { passInterval in
      let start = ManualClock().now
      loop.state.withLock { $0 = .working(until: start + .seconds(150)) }
      #expect(await passInterval() == 1)
      #expect(await passInterval() == 2)
      #expect(await passInterval() == 2)
      #expect(await passInterval() == 2)
      loop.state.withLock { $0 = .waiting(5) }
      #expect(await passInterval() == 3)
    }
  }

  /// Fails if a service whose handler never starts again looks as if it worked.
  @Test("A handler that does not run is reported once, and always if that is shown as an error") func absent()
    async throws
  {
    let loop = Loop()
    try await watch(loop) { passInterval in
      loop.state.withLock { $0 = .absent }
      #expect(await passInterval() == 1)
      #expect(await passInterval() == 1)
      #expect(await passInterval() == 1)
      loop.state.withLock { $0 = .failed }
      #expect(await passInterval() == 2)
      #expect(await passInterval() == 3)
      loop.state.withLock { $0 = .waiting(7) }
      #expect(await passInterval() == 4)
    }
  }

  @Test("A handler that does not react to a change is not reported until it reacts") func missesReaction() async throws
  {
    let loop = Loop()
    try await watch(loop) { passInterval in
      #expect(await passInterval() == 1)
      loop.reacts.withLock { $0 = false }
      // It reacted to the change of the interval before.
      #expect(await passInterval() == 2)
      #expect(await passInterval() == 2)
      #expect(await passInterval() == 2)
      loop.reacts.withLock { $0 = true }
      #expect(await passInterval() == 2)
      #expect(await passInterval() == 3)
    }
  }

  @Test("The handler of a service reacts to the watchdog") func watchesService() async throws {
    let fixture = try ServiceFixture()
    try await fixture.enroll("mail")
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await fixture.until(.idle(pending: 0))
    @Sendable func wait() -> Int { if case .waiting(let number) = fixture.service.handlerState { number } else { 0 } }
    try await eventually("the handler waits") { wait() > 0 }
    for _ in 1...3 {
      let former = wait()
      fixture.service.endWait()
      try await eventually("the handler waits again") { wait() > former }
      #expect(await fixture.board.panel.showing == .idle(pending: 0))
    }
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
    #expect(fixture.service.handlerState == .absent)
  }
}
