/// What one connection to a broker is for.
struct Session: Sendable {
  let broker: Broker
  /// The broker knows a session by it.
  let clientID: String
  /// The topic that is read; nil when there is only something to publish. With one, the broker keeps the session, and
  /// what arrives for it, while there is no connection.
  var mailbox: String?
  /// Says `online` or `offline`, retained.
  var presence: String?

  /// How long the broker keeps what nobody fetched (MQTT 5 §3.1.2.11.2): longer than any request lives.
  static let expiry = Duration.seconds(86_400)
  static let keepalive = Duration.seconds(30)
  /// From the first packet to the subscription.
  static let setUpLimit = Duration.seconds(20)
}
