import Courier
import Cryptography
import Logging
import MQTT
import PingAMAdapter
import ReferenceAdapter
import Vault

/// The configured broker: hints of reference token servers, and push messages of PingAM.
struct BrokerMailbox: HintBroker {
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
    // A token server's name for a device is 64 hex digits; 22 of them are enough to be one's own.
    let reader = MQTT.Mailbox(at: broker, topic: mailbox, clientID: "t" + device.prefix(22).lowercased()) { report in
      if report == .connected {
        logger.info("listening at the broker \(settings.host)")
        isUp()
      }
    }
    // Nothing has to be kept of a hint: what it is about is in the token server's list.
    let failure = await reader.listen { message in
      take(message)
      return true
    }
    if failure != .closed { logger.warning("\(failure)") }
    return "\(failure)"
  }

  /// Brings what AM's side publishes to the mailbox, until the task is cancelled. `MAILBOX/presence` says whether anybody
  /// fetches.
  func bring(from mailbox: String, to ingress: PushIngress) async throws {
    let reader = MQTT.Mailbox(
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
    try await reader.run { message in ingress.settles(message) }
  }

  /// Mailboxes may begin alike, and two with one id would take the session from each other for ever.
  private static func clientID(for mailbox: String) -> String {
    "t" + SHA256.hash(Array(mailbox.utf8)).lowercaseHex.prefix(22)
  }

  private func broker() throws -> Broker {
    let trust = try vault.trust(pins: settings.pins, authorities: settings.authorities)
    return Broker(
      host: settings.host, port: settings.port, trust: trust, credentials: credentials, version: settings.version)
  }
}
