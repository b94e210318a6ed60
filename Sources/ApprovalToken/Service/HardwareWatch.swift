import FrontPanel
import Logging
import MobileAuth
import ServiceLifecycle

/// Says in the log what is wrong with the board's hardware, and when that has ended. The panel sees to it by itself that
/// nothing is approved meanwhile.
struct HardwareWatch: Service {
  /// A bus takes its time to tell what is plugged in; nothing is missing before.
  private static let beginning = Duration.seconds(1)

  let panel: FrontPanel
  let timekeeper: any Timekeeper
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      try? await timekeeper.sleep(until: timekeeper.now + Self.beginning)
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
