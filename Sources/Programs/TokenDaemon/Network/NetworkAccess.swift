// SPDX-License-Identifier: Apache-2.0
import CurlHTTP
package import HTTP
import Logging
import MQTT
import MobileAuth
import NetworkDaemon
package import RelayProtocol
import ServiceLifecycle
import Synchronization

/// How the service reaches the network: from this process, or through the network process.
package struct NetworkAccess: Sendable {
  package let makeHTTPTransport: @Sendable (ServerTrust) -> any HTTPTransport
  let makeEnrollmentTransport: @Sendable (ServerTrust) -> any HTTPTransport
  let subscriptions: any SubscriptionConnector
  /// The network process; nil if this process uses the network itself.
  let relay: Relay?

  package static let ofThisProcess = NetworkAccess(
    makeHTTPTransport: { CurlHTTPTransport(trust: $0) }, makeEnrollmentTransport: { CurlHTTPTransport(trust: $0) },
    subscriptions: LocalConnector(), relay: nil)

  package static func through(_ relay: Relay) -> NetworkAccess {
    let patient = relay.with(patience: Relay.commandPatience)
    return NetworkAccess(
      makeHTTPTransport: { RelayHTTPTransport(trust: $0, through: relay) },
      makeEnrollmentTransport: { RelayHTTPTransport(trust: $0, through: patient) },
      subscriptions: RelayConnector(through: relay), relay: relay)
  }
}

/// Watches the network process: while it is gone, no server counts as connected.
struct NetworkProcessWatch: Service {
  /// The pause between attempts, and after one of too many returns.
  private static let (pause, longPause) = (Duration.seconds(1), Duration.seconds(30))

  let relay: Relay
  let environment: TokenEnvironment
  let logger: LimitedLog
  /// Called with the reason when the network process has ended, or is not there at the start; with nil when it is
  /// there again.
  let onChange: @Sendable (_ outage: String?) -> Void

  func run() async throws {
    let wasUp = Mutex(true)
    let returns = Mutex(TokenBucket.ofReturns)
    await cancelWhenGracefulShutdown {
      while let failure = await relay.attend(isUp: {
        logger.report("reached the network process", at: .info, about: Self.subject)
        let isBack = wasUp.withLock { wasUp in
          defer { wasUp = true }
          return !wasUp
        }
        if isBack { onChange(nil) }
      }) {
        let hasEnded = wasUp.withLock { wasUp in
          defer { wasUp = false }
          return wasUp
        }
        if hasEnded {
          logger.report("no server can be reached: \(failure)", about: Self.subject)
          onChange("\(failure)")
        }
        let isFrequent = hasEnded && !returns.withLock { $0.take(at: environment.now.uptime) }
        guard (try? await environment.sleep(for: isFrequent ? Self.longPause : Self.pause)) != nil else { return }
      }
    }
  }

  private static let subject = "the network process"
}

/// Receives login hints from the push listener in the network process. Limits them again.
struct RelayedHints: Service {
  let relay: Relay
  let address: ListenAddress
  let environment: TokenEnvironment
  let logger: LimitedLog
  let onHint: @Sendable () -> Void

  func run() async throws {
    let bucket = Mutex(TokenBucket.ofHints)
    await cancelWhenGracefulShutdown {
      let first = Duration.seconds(1)
      let pause = Mutex(first)
      while let failure = await relay.listen(
        at: "\(address)", isUp: { pause.withLock { $0 = first } },
        onHint: { if bucket.withLock({ $0.take(at: environment.now.uptime) }) { onHint() } })
      {
        logger.report("[push] listen: no login hints: \(failure)", about: "login hints")
        let now = pause.withLock { pause in
          defer { pause = min(pause * 2, .seconds(30)) }
          return pause
        }
        guard (try? await environment.sleep(for: now)) != nil else { return }
      }
    }
  }
}
