// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import Logging
import MobileAuth
import ServiceLifecycle

/// Logs hardware faults of the board when they begin and when they end, at most 60 lines an hour about the chip and as
/// many about the keypad: a USB device can cause many. The panel itself prevents approvals while a fault lasts.
struct HardwareWatch: Service {
  /// USB enumeration takes time after the start; a missing device is reported only after this delay.
  private static let beginning = Duration.seconds(1)

  private let panel: FrontPanel
  private let environment: TokenEnvironment
  private let log: LimitedLog

  init(panel: FrontPanel, environment: TokenEnvironment, logger: Logger) {
    self.panel = panel
    self.environment = environment
    log = LimitedLog(logger, clock: environment.clock)
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      try? await environment.sleep(for: Self.beginning)
      var known: [String?] = [nil, nil]
      known = await report(since: known)
      for await _ in panel.troubleChanges { known = await report(since: known) }
    }
  }

  private func report(since known: [String?]) async -> [String?] {
    let present = [await panel.buttonTrouble, await panel.keypadTrouble]
    for (subject, (former, trouble)) in zip(["the chip", "the keypad"], zip(known, present)) where former != trouble {
      if let former { log.report("over: \(former)", at: .info, about: subject) }
      if let trouble { log.report("trouble: \(trouble)", at: .error, about: subject) }
    }
    return present
  }
}
