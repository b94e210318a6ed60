// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import MobileAuth
import ServiceLifecycle

/// Reports at intervals that the service works: that its threads run tasks, that the panel answers, and that the
/// request handler reacts to changes. It wakes the handler and looks at the next interval whether the handler waits
/// again. A handler that handles a request, or that does not run because of an error, which the LED shows, is not a
/// hang.
struct Watchdog: Service {
  let interval: Duration
  let environment: TokenEnvironment
  let subject: any WatchdogSubject
  let panel: FrontPanel
  /// Called once per interval while the service works.
  let report: @Sendable () -> Void

  func run() async throws {
    await cancelWhenGracefulShutdown {
      var former: Int?
      while (try? await environment.sleep(for: interval)) != nil {
        _ = await panel.troubles
        let current = subject.currentWait
        if current == nil || current != former { report() }
        former = current
        subject.endWait()
      }
    }
  }
}

/// What the watchdog watches.
protocol WatchdogSubject: Sendable {
  /// The number of the wait in which the request handler is; nil while it is not waiting.
  var currentWait: Int? { get }
  /// Ends the wait.
  func endWait()
}

extension TokenService: WatchdogSubject {}
