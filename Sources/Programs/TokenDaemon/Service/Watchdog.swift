// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import MobileAuth
import ServiceLifecycle

/// Reports at intervals that the service works: that its threads run tasks, that the panel answers, and that the
/// request handler reacts to changes. It wakes the handler and looks at the next interval whether the handler waits
/// again. A handler that works within its time limit, or that pauses after an error, which the LED shows, is
/// not a hang; one that works beyond it, or does not run for another reason, at two looks in a row is one.
struct Watchdog: Service {
  let interval: Duration
  let environment: TokenEnvironment
  let subject: any WatchdogSubject
  let panel: FrontPanel
  /// Called once per interval while the service works.
  let report: @Sendable () -> Void

  func run() async throws {
    await cancelWhenGracefulShutdown {
      var former: HandlerState?
      while (try? await environment.sleep(for: interval)) != nil {
        _ = await panel.troubles
        let current = subject.handlerState
        if current.isNormal(at: environment.now) || current != former { report() }
        former = current
        subject.endWait()
      }
    }
  }
}

/// What the watchdog watches.
protocol WatchdogSubject: Sendable {
  var handlerState: HandlerState { get }
  /// Ends the handler's wait.
  func endWait()
}

/// What the request handler does.
enum HandlerState: Equatable {
  /// It waits for a change; the number of the wait.
  case waiting(Int)
  /// It works, until `until` at the latest: handles a request while that is valid, runs a command's dialog, stores.
  case working(until: MonotonicInstant)
  /// It does not run because of an error, which the LED shows, and begins again after a pause.
  case failed
  /// It does not run, for example while the accounts are read again.
  case absent

  /// Whether it may last.
  fileprivate func isNormal(at now: MonotonicInstant) -> Bool {
    switch self {
    case .working(let limit): now <= limit
    case .failed: true
    case .waiting, .absent: false
    }
  }
}

extension TokenService: WatchdogSubject {}
