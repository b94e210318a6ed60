// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import Logging
import MQTT
import MobileAuth
import ServerBackends

/// An MQTT client of the configured broker: receives hints and push messages of token servers.
struct BrokerSubscriber: HintBroker {
  let settings: BrokerSettings
  let credentials: Broker.Credentials?
  let environment: TokenEnvironment
  private let limitedLog: LimitedLog

  init(
    settings: BrokerSettings, credentials: Broker.Credentials?, environment: TokenEnvironment, logger: Logger
  ) {
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
      at: broker, topic: mailbox, clientID: "t" + device.prefix(22).lowercased(), random: environment.random
    ) { report in
      if report == .connected {
        limitedLog.report("listening at the broker \(settings.host)", at: .info, about: Self.connection)
        isUp()
      }
    }
    // Hints are not stored: the token server's request list has the content.
    let failure = await reader.listen { message in
      take(message)
      return true
    }
    if failure != .closed { limitedLog.report("\(failure)", about: Self.connection) }
    return "\(failure)"
  }

  /// Delivers the messages that are published to the topic `mailbox`, until the task is canceled. `MAILBOX/presence` is
  /// a retained message that says whether a subscriber is connected.
  func deliver(from mailbox: String, to receiver: any PushReceiver) async throws {
    let reader = MQTT.Subscriber(
      at: broker, topic: mailbox, clientID: Self.clientID(for: mailbox), presence: "\(mailbox)/presence",
      random: environment.random
    ) { report in
      switch report {
      case .connected:
        limitedLog.report("fetching push messages at the broker \(settings.host)", at: .info, about: Self.connection)
        receiver.set(channelFault: nil, of: mailbox)
      case .disconnected(let failure, let pause):
        limitedLog.report("\(failure); trying again in \(pause)", about: Self.connection)
        receiver.set(channelFault: "\(failure)", of: mailbox)
      case .refused(let bytes):
        limitedLog.report("a push message of \(bytes) bytes was refused at the broker", about: "refused push messages")
      }
    }
    try await reader.run { message in receiver.isFinal(message) }
  }

  /// Hashes the topic, because topics may share a prefix. Two connections with one client id would end each other's
  /// session repeatedly.
  private static func clientID(for mailbox: String) -> String {
    "t" + SHA256.hash(Array(mailbox.utf8)).lowercaseHex.prefix(22)
  }

  private var broker: Broker {
    let trust = ServerTrust(
      pins: settings.pins, authorityFile: settings.authorities, earliestNow: releaseTime)
    return Broker(
      host: settings.host, port: settings.port, trust: trust, credentials: credentials, version: settings.version)
  }
}
