import CMosquitto

/// Why there is no connection to a broker, in words for whoever set it up.
public enum BrokerError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No name, no route, refused, silent, or broken off.
  case unreachable(String)
  /// The certificate is not one we trust; the text says why.
  case untrusted(String)
  case refused(String)
  /// The broker's access list does not let us read this topic.
  case mayNotRead(topic: String)
  /// What was configured cannot work.
  case unusable(String)
  /// The consumer did not take a message: it stays with the broker and comes again.
  case notTaken
  /// We ended it.
  case closed

  public var description: String {
    switch self {
    case .unreachable(let reason): "the broker cannot be reached: \(reason)"
    case .untrusted(let reason):
      "the broker's certificate is not trusted: \(reason). Is this the right authority file, pin and host name?"
    case .refused(let reason): "the broker refuses us: \(reason)"
    case .mayNotRead(let topic): "the broker does not let us read \(topic): its access list must allow this user to"
    case .unusable(let reason): "no broker can be used like this: \(reason)"
    case .notTaken: "a message could not be made durable; the broker keeps it"
    case .closed: "the connection to the broker was closed"
    }
  }

  /// What a CONNACK says, in MQTT 3.1.1 (§3.2.2.3) or 5 (§3.2.2.2).
  init(connectReason code: Int32) {
    self =
      switch UInt32(code) {
      case 1, MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION.rawValue:
        .refused("it does not speak this version of MQTT; try the other one")
      case 2, MQTT_RC_CLIENTID_NOT_VALID.rawValue: .refused("it does not accept our client id")
      case 4, MQTT_RC_BAD_USERNAME_OR_PASSWORD.rawValue: .refused("wrong user or password")
      case 5, MQTT_RC_NOT_AUTHORIZED.rawValue: .refused("wrong user or password, or this user may not connect")
      case 3, MQTT_RC_SERVER_UNAVAILABLE.rawValue, MQTT_RC_SERVER_BUSY.rawValue: .unreachable("it is too busy")
      default: .refused(String(cString: mosquitto_reason_string(code)))
      }
  }

  /// What a broker says when it sends us away (MQTT 5 §3.14.2.1).
  init(disconnectReason code: Int32) {
    self =
      switch UInt32(code) {
      case MQTT_RC_SESSION_TAKEN_OVER.rawValue: .refused("another client has connected with our client id")
      case MQTT_RC_SERVER_SHUTTING_DOWN.rawValue: .unreachable("it is shutting down")
      default: .unreachable("it ended the connection: \(String(cString: mosquitto_reason_string(code)))")
      }
  }
}
