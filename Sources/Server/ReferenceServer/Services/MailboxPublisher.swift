// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import Logging
import MQTT
import ReferenceProtocol
import Secrets
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerHTTP
import TokenServerStore

/// Publishes hints at an MQTT broker for devices that request it (`PUT …/push {"transport":"mqtt"}`). A hint has no
/// content: the broker and its other clients learn only when a device had a new event.
final class MailboxPublisher: Mailboxes, Service {
  private let publisher: Publisher
  private let topicPrefix: String
  private let hasher: KeyedHasher
  /// The client ids of the devices that request hints at the broker.
  private let devices = Mutex(Devices())

  private struct Devices {
    var ids: Set<ClientID> = []
    /// The number of changes by `set`.
    var changes = 0
  }

  /// - Parameters:
  ///   - authorityFile: the path of the configured file.
  ///   - server: distinguishes servers that use the same broker; empty for a single one.
  ///   - random: uniform in 0..<1, for the pauses before new connections.
  init(
    _ settings: ServerConfiguration.MQTT, authorityFile: String?, hasher: KeyedHasher,
    server: String = "", log: Logger, random: @escaping @Sendable () -> Double
  ) {
    topicPrefix = settings.topicPrefix
    self.hasher = hasher
    var credentials: Broker.Credentials?
    if let user = settings.username, let password = settings.password {
      credentials = Broker.Credentials(user: user, password: SecretBytes(copying: Array(password.utf8)))
    }
    publisher = Publisher(
      at: Broker(
        host: settings.host, port: settings.port, trust: ServerTrust(authorityFile: authorityFile),
        credentials: credentials),
      clientID: "ts" + hasher.hash("token-server\(server)", for: .mailbox).prefix(10).lowercaseHex, random: random
    ) { report in
      switch report {
      case .connected: log.info("connected to the broker")
      case .disconnected(let why, let pause): log.warning("\(why); trying again in \(pause)")
      case .refused(let topic): log.warning("a hint for \(topic) could not be published")
      }
    }
  }

  /// The MQTT topic for the device's hints: not guessable, and the same after every restart.
  func topic(of clientID: ClientID) -> String {
    "\(topicPrefix)/" + hasher.hash(clientID.text, for: .mailbox).prefix(16).lowercaseHex
  }

  func isWanted(by clientID: ClientID) -> Bool { devices.withLock { $0.ids.contains(clientID) } }

  func set(_ clientID: ClientID, isWanted: Bool) {
    devices.withLock { devices in
      devices.changes += 1
      if isWanted { devices.ids.insert(clientID) } else { devices.ids.remove(clientID) }
    }
  }

  /// Reads which devices request hints: before a restart, or at another server.
  func restore(from store: Store) async throws {
    let changes = devices.withLock { $0.changes }
    let known = try await store.read { try $0.devices(withTransport: .mqtt) }
    // With a change meanwhile, the next time.
    devices.withLock { if $0.changes == changes { $0.ids = known } }
  }

  /// - Returns: false if the device does not request hints at the broker, as far as this server knows.
  func publish(_ kind: DeviceEvent.Kind, to clientID: ClientID) -> Bool {
    guard isWanted(by: clientID) else { return false }
    publisher.post(JSON.encode(DeviceEvent(kind)), to: topic(of: clientID))
    return true
  }

  func run() async throws {
    let publishing = Task { [publisher] in try? await publisher.run() }
    try? await gracefulShutdown()
    // The hints of the last requests, if the broker answers.
    for _ in 0..<50 where !publisher.isIdle { try? await Task.sleep(for: .milliseconds(10)) }
    publishing.cancel()
    await publishing.value
  }
}
