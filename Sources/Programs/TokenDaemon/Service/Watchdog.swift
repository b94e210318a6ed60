// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import MobileAuth
import ServiceLifecycle

/// Reports at intervals that the service works: that its threads run tasks, that the panel answers, and that the
/// request handler reacts to changes. It wakes the handler and looks at the next interval whether the handler waits
/// again. A handler that handles a valid request, or that does not run because of an error, which the LED shows, is not
/// a hang; one that handles a request that is over, or does not run for another reason, at two looks in a row is one.
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
  /// It handles a request until `until` at the latest, or something else (nil): a PIN change takes as long as its user.
  case handling(until: MonotonicInstant?)
  /// It does not run because of an error, which the LED shows.
  case failed
  /// It does not run, for example while the accounts are read again.
  case absent

  /// Whether it may last.
  fileprivate func isNormal(at now: MonotonicInstant) -> Bool {
    switch self {
    case .handling(let limit): limit.map { now <= $0 } ?? true
    case .failed: true
    case .waiting, .absent: false
    }
  }
}

extension TokenService: WatchdogSubject {}
