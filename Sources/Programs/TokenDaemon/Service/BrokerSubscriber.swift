// SPDX-License-Identifier: Apache-2.0
import HTTP
import Logging
import MQTT
import MobileAuth
import ServerBackends

/// An MQTT client of the configured broker: receives hints and push messages of token servers.
struct BrokerSubscriber: HintBroker {
  let settings: BrokerSettings
  let credentials: Broker.Credentials?
  /// Of the connection for push messages.
  private let clientID: String
  private let connector: any SubscriptionConnector
  let environment: TokenEnvironment
  private let limitedLog: LimitedLog

  init(
    settings: BrokerSettings, credentials: Broker.Credentials?, clientID: String,
    connector: any SubscriptionConnector, environment: TokenEnvironment, logger: Logger
  ) {
    self.clientID = clientID
    self.connector = connector
    self.settings = settings
    self.credentials = credentials
    self.environment = environment
    limitedLog = LimitedLog(logger, clock: environment.clock)
  }

  private static let connection = "the connection to the broker"

  var replacesEventStream: Bool { settings.replacesEventStream }

  func read(
    _ mailbox: String, of device: String, isUp: @escaping @Sendable () -> Void,
    take: @escaping @Sendable ([UInt8]) -> Void
  ) async -> String {
    // The token server names a device with 64 hex digits. 22 of them make the MQTT client id unique.
    let reader = MQTT.Subscriber(
      at: broker, topics: [mailbox], clientID: "t" + device.prefix(22).lowercased(), over: connector,
      random: environment.random
    ) { report in
      if case .connected = report {
        limitedLog.report("listening at the broker \(settings.host)", at: .info, about: Self.connection)
        isUp()
      }
    }
    // Hints are not stored: the token server's request list has the content.
    let failure = await reader.listen { message, _ in
      take(message)
      return true
    }
    if failure != .closed { limitedLog.report("\(failure)", about: Self.connection) }
    return "\(failure)"
  }

  /// Delivers the messages that are published to the mailboxes, over one connection, until the task is canceled. For
  /// each mailbox, `MAILBOX/presence` names the topic of this token's presence, `approval-token/CLIENT-ID/presence`.
  /// - Parameters:
  ///   - report: called after a change of the connection was logged.
  ///   - take: as for `MQTT.Subscriber.run`.
  func deliver(
    from mailboxes: Set<String>, report: @escaping @Sendable (MQTT.Subscriber.Report) -> Void,
    take: @Sendable ([UInt8], _ mailbox: String) async -> Bool
  ) async throws {
    let reader = MQTT.Subscriber(
      at: broker, topics: mailboxes, clientID: clientID, presence: "approval-token/\(clientID)/presence",
      over: connector, random: environment.random
    ) {
      log($0)
      report($0)
    }
    try await reader.run(take)
  }

  private func log(_ report: MQTT.Subscriber.Report) {
    switch report {
    case .connected:
      limitedLog.report("fetching push messages at the broker \(settings.host)", at: .info, about: Self.connection)
    case .mayNotRead(let topic):
      limitedLog.report("\(BrokerError.mayNotRead(topic: topic))", about: "a topic that cannot be read")
    case .disconnected(let failure, let pause):
      limitedLog.report("\(failure); trying again in \(pause)", about: Self.connection)
    case .refused(let bytes):
      limitedLog.report("a push message of \(bytes) bytes was refused at the broker", about: "refused push messages")
    }
  }

  private var broker: Broker {
    let trust = ServerTrust(
      pins: settings.pins, authorityFile: settings.authorities, earliestNow: releaseTime)
    return Broker(
      host: settings.host, port: settings.port, trust: trust, credentials: credentials, version: settings.version)
  }
}
