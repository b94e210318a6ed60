// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Logging
import MobileAuth
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct StopAfterAnswerTests {
  private let clock = ManualClock()
  private let answer = StartedAnswer()

  private func run(_ body: (_ stop: @Sendable () -> Void, _ isOver: ChangeSignal) async throws -> Void) async throws {
    let environment = TokenEnvironment.test(clock)
    let (stopping, stops) = AsyncStream.makeStream(of: Void.self)
    let isOver = ChangeSignal()
    let running = Task { [answer] in
      await StopAfterAnswer(
        answer: answer, environment: environment, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      ).run {
        for await _ in stopping { return }
        throw CancellationError()
      } _: {
        try? await environment.sleep(for: .seconds(3600))
      }
      isOver.raise()
    }
    try await body({ stops.yield() }, isOver)
    running.cancel()
    try await running.finished()
  }

  @Test("Without an answer under way, the handler is canceled at once") func idle() async throws {
    try await run { stop, isOver in
      stop()
      try await isOver.wait(beyond: 0)
    }
    #expect(answer.isStopping)
  }

  @Test("The handler is canceled when the answer has ended") func underway() async throws {
    answer.set(isTouched: true)
    try await run { stop, isOver in
      stop()
      // The handler and the limit.
      await clock.untilAsleep(2)
      #expect(answer.isStopping && isOver.generation == 0)
      answer.end()
      try await isOver.wait(beyond: 0)
    }
  }

  @Test("The handler is canceled at the limit, although the answer has not ended") func endless() async throws {
    answer.set(isTouched: true)
    try await run { stop, isOver in
      stop()
      await clock.untilAsleep(2)
      clock.advance(by: StopAfterAnswer.limit - .milliseconds(1))
      for _ in 0..<1000 { await Task.yield() }
      #expect(isOver.generation == 0)
      clock.advance(by: .milliseconds(1))
      try await isOver.wait(beyond: 0)
    }
  }

  @Test("A service that is canceled does not wait") func canceled() async throws {
    answer.set(isTouched: true)
    try await run { _, _ in }
    #expect(!answer.isStopping)
  }
}
