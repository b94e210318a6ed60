// SPDX-License-Identifier: Apache-2.0
package import MQTT
import Secrets

/// A subscription for the network process, with the broker's authorities and credentials.
package struct RelaySubscription: Equatable, Sendable {
  package var host: String
  package var port: Int
  package var trust: RelayTrust
  package var user: String?
  /// In ordinary memory, as in libmosquitto: it gives access only to the broker.
  package var password: [UInt8]
  package var isVersion5: Bool
  /// Replies name a topic by its index.
  package var topics: [String]
  package var clientID: String
  package var presence: String?

  static let mostTopics = 4096
  private static let longestText = 1024
  /// The maximum length of an MQTT string.
  private static let longestMQTTText = 65_535

  package init(_ subscription: Subscription, authorities: [UInt8]?) {
    let broker = subscription.broker
    host = broker.host
    port = Int(broker.port)
    trust = RelayTrust(broker.trust, authorities: authorities)
    user = broker.credentials?.user
    password = broker.credentials?.password.withExposedSecret { Array($0) } ?? []
    isVersion5 = broker.version == .v5
    topics = subscription.topics.sorted()
    clientID = subscription.clientID
    presence = subscription.presence
  }

  /// - Parameter authorityFile: a file with the authorities of `trust`.
  package func subscription(authorityFile: String?) -> Subscription {
    let credentials = user.map { Broker.Credentials(user: $0, password: SecretBytes(copying: password)) }
    let broker = Broker(
      host: host, port: UInt16(clamping: port), trust: trust.serverTrust(authorityFile: authorityFile),
      credentials: credentials, version: isVersion5 ? .v5 : .v311)
    return Subscription(broker: broker, topics: Set(topics), clientID: clientID, presence: presence)
  }

  func write(to writer: inout RelayWriter) {
    writer.put(host)
    writer.put(port)
    trust.write(to: &writer)
    writer.put(user) { $0.put($1) }
    writer.put(password)
    writer.put(isVersion5)
    writer.put(all: topics) { $0.put($1) }
    writer.put(clientID)
    writer.put(presence) { $0.put($1) }
  }

  init(_ reader: inout RelayReader) throws(RelayError) {
    host = try reader.text(atMost: Self.longestText)
    port = try reader.number(1...65_535)
    trust = try RelayTrust(&reader)
    user = try reader.optional { reader throws(RelayError) in try reader.text(atMost: Self.longestMQTTText) }
    password = try reader.bytes(atMost: Self.longestMQTTText)
    isVersion5 = try reader.flag()
    topics = try reader.list(atMost: Self.mostTopics) { reader throws(RelayError) in
      try reader.text(atMost: Self.longestMQTTText)
    }
    clientID = try reader.text(atMost: Self.longestText)
    presence = try reader.optional { reader throws(RelayError) in try reader.text(atMost: Self.longestMQTTText) }
  }
}
