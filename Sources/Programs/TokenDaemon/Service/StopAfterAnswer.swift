// SPDX-License-Identifier: Apache-2.0
import Logging
import MobileAuth
import ServiceLifecycle

/// Stops the request handler, but lets an answer that the user has begun end first: an update of the packages restarts
/// the service at any moment.
struct StopAfterAnswer: Sendable {
  /// How long the stop waits for the answer. The unit's `TimeoutStopSec=` is longer.
  static let limit = Duration.seconds(30)

  let answer: StartedAnswer
  let environment: TokenEnvironment
  let logger: Logger

  /// Runs `body` until it ends, and cancels it after `stop` has returned and no answer is under way.
  /// - Parameter stop: returns when the service is to stop; throws when it is canceled.
  func run(
    until stop: @escaping @Sendable () async throws -> Void = gracefulShutdown,
    _ body: @escaping @Sendable () async -> Void
  ) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await body() }
      group.addTask {
        guard (try? await stop()) != nil else { return }
        await waitForAnswer()
      }
      await group.next()
      group.cancelAll()
    }
  }

  private func waitForAnswer() async {
    guard answer.stop() else { return }
    logger.info("the service stops when the answer at the panel has ended, within \(Self.limit.inSeconds)")
    guard (try? await answer.waitForEnd(until: environment.now + Self.limit, in: environment)) == false else { return }
    logger.warning("the answer at the panel has not ended in time")
  }
}
