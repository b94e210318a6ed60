// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import Logging
import MQTT
import PingAMAdapter
import ReferenceAdapter
import Vault

/// An MQTT client of the configured broker: receives hints of reference token servers and push messages of PingAM.
struct BrokerSubscriber: HintBroker {
  let settings: BrokerSettings
  let credentials: Broker.Credentials?
  let vault: Vault
  let logger: Logger

  var replacesEventStream: Bool { settings.replacesEventStream }

  func read(
    _ mailbox: String, of device: String, isUp: @escaping @Sendable () -> Void,
    take: @escaping @Sendable ([UInt8]) -> Void
  ) async -> String {
    let broker: Broker
    do { broker = try self.broker() } catch { return "\(error)" }
    // The token server names a device with 64 hex digits. 22 of them make the MQTT client id unique.
    let reader = MQTT.Subscriber(at: broker, topic: mailbox, clientID: "t" + device.prefix(22).lowercased()) { report in
      if report == .connected {
        logger.info("listening at the broker \(settings.host)")
        isUp()
      }
    }
    // Hints are not stored: the token server's request list has the content.
    let failure = await reader.listen { message in
      take(message)
      return true
    }
    if failure != .closed { logger.warning("\(failure)") }
    return "\(failure)"
  }

  /// Delivers the messages that AM publishes to the topic `mailbox`, until the task is canceled. `MAILBOX/presence` is
  /// a retained message that says whether a subscriber is connected.
  func bring(from mailbox: String, to ingress: PushIngress) async throws {
    let reader = MQTT.Subscriber(
      at: try broker(), topic: mailbox, clientID: Self.clientID(for: mailbox), presence: "\(mailbox)/presence"
    ) { report in
      switch report {
      case .connected:
        logger.info("fetching push messages at the broker \(settings.host)")
        ingress.set(channelFault: nil, of: mailbox)
      case .disconnected(let failure, let pause):
        logger.warning("\(failure); trying again in \(pause)")
        ingress.set(channelFault: "\(failure)", of: mailbox)
      case .refused(let bytes): logger.warning("a push message of \(bytes) bytes was refused at the broker")
      }
    }
    try await reader.run { message in ingress.isFinal(message) }
  }

  /// Hashes the topic, because topics may share a prefix. Two connections with one client id would end each other's
  /// session repeatedly.
  private static func clientID(for mailbox: String) -> String {
    "t" + SHA256.hash(Array(mailbox.utf8)).lowercaseHex.prefix(22)
  }

  private func broker() throws -> Broker {
    let trust = try vault.trust(pins: settings.pins, authorities: settings.authorities)
    return Broker(
      host: settings.host, port: settings.port, trust: trust, credentials: credentials, version: settings.version)
  }
}
