// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import Logging
import MobileAuth
import ServiceLifecycle

/// Logs hardware faults of the board when they begin and when they end. The panel itself prevents approvals while a
/// fault lasts.
struct HardwareWatch: Service {
  /// USB enumeration takes time after the start; a missing device is reported only after this delay.
  private static let beginning = Duration.seconds(1)

  let panel: FrontPanel
  let environment: TokenEnvironment
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      try? await environment.sleep(for: Self.beginning)
      var known: [String] = []
      known = await report(since: known)
      for await _ in panel.troubleChanges { known = await report(since: known) }
    }
  }

  private func report(since known: [String]) async -> [String] {
    let troubles = await panel.troubles
    for trouble in known where !troubles.contains(trouble) { logger.info("over: \(trouble)") }
    for trouble in troubles where !known.contains(trouble) { logger.error("trouble: \(trouble)") }
    return troubles
  }
}
