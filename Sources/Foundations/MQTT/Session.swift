// SPDX-License-Identifier: Apache-2.0
/// The parameters of a connection to a broker.
struct Session: Sendable {
  let broker: Broker
  /// Identifies the session at the broker.
  let clientID: String
  /// The topic to subscribe to; nil for publishing only. With a topic, the broker keeps the session and its messages
  /// while there is no connection.
  var topic: String?
  /// The topic with the retained message `online` or `offline`.
  var presence: String?

  /// How long the broker keeps undelivered messages (MQTT 5 §3.1.2.11.2): longer than the lifetime of any request.
  static let expiry = Duration.seconds(86_400)
  static let keepalive = Duration.seconds(30)
  /// The time limit from the first packet to the subscription.
  static let setUpLimit = Duration.seconds(20)
}
