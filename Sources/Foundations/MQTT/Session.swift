// SPDX-License-Identifier: Apache-2.0
/// The parameters of a connection to a broker.
struct Session: Sendable {
  let broker: Broker
  /// Identifies the session at the broker.
  let clientID: String
  /// The topics to subscribe to; empty for publishing only. With topics, the broker keeps the session, its
  /// subscriptions and their messages while there is no connection.
  var topics: Set<String> = []
  /// The topic with the retained message `online` or `offline`. For each topic that is read, `TOPIC/presence` has its
  /// name, retained.
  var presence: String?
  /// The seconds without a packet after which the client sends a PINGREQ, if the broker does not set another time (MQTT
  /// 5 §3.2.2.3.14). libmosquitto accepts 5 or more.
  var keepalive: UInt16 = 30
  /// The time limit from the name resolution to the first subscription, or without topics to the connection. Some
  /// attempts have a multiple of it for the TCP connection alone.
  var setUpLimit = Duration.seconds(20)
  /// The error after that time, or a multiple of it.
  func lateness(after patience: Int = 1) -> BrokerError {
    .unreachable("no connection within \(setUpLimit * patience)")
  }

  /// How long the broker keeps undelivered messages (MQTT 5 §3.1.2.11.2): longer than the lifetime of any request.
  static let expiry = Duration.seconds(86_400)
  /// After this time a subscription that the broker refused is requested again.
  static let refusalPause = Duration.seconds(60)
}
