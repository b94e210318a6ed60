// SPDX-License-Identifier: Apache-2.0
import CMosquitto

/// The reason why there is no connection to a broker, as text for the operator.
package enum BrokerError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Unknown name, no route, connection refused or lost, or no response.
  case unreachable(String)
  /// The certificate is not trusted; the text gives the reason.
  case untrusted(String)
  case refused(String)
  /// The broker's access list does not permit this client to read the topic.
  case mayNotRead(topic: String)
  /// The configuration is invalid.
  case unusable(String)
  /// The consumer could not store a message. The broker keeps it and sends it again.
  case notTaken
  /// This client closed the connection.
  case closed

  package var description: String {
    switch self {
    case .unreachable(let reason): "the broker cannot be reached: \(reason)"
    case .untrusted(let reason):
      "the broker's certificate is not trusted: \(reason). Is this the right authority file, pin and host name?"
    case .refused(let reason): "the broker refused the connection: \(reason)"
    case .mayNotRead(let topic): "the broker does not permit reading \(topic): allow it in the access list"
    case .unusable(let reason): "the broker's configuration is invalid: \(reason)"
    case .notTaken: "a message could not be made durable; the broker keeps it"
    case .closed: "the connection to the broker was closed"
    }
  }

  /// The error for a reason code in CONNACK, of MQTT 3.1.1 (§3.2.2.3) or 5 (§3.2.2.2).
  init(connectReason code: Int32) {
    self =
      switch UInt32(code) {
      case 1, MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION.rawValue:
        .refused("it does not speak this version of MQTT; try the other one")
      case 2, MQTT_RC_CLIENTID_NOT_VALID.rawValue: .refused("it does not accept the client id")
      case 4, MQTT_RC_BAD_USERNAME_OR_PASSWORD.rawValue: .refused("wrong user or password")
      case 5, MQTT_RC_NOT_AUTHORIZED.rawValue: .refused("wrong user or password, or this user may not connect")
      case 3, MQTT_RC_SERVER_UNAVAILABLE.rawValue, MQTT_RC_SERVER_BUSY.rawValue: .unreachable("it is too busy")
      default: .refused(String(cString: mosquitto_reason_string(code)))
      }
  }

  /// The error for a reason code in DISCONNECT (MQTT 5 §3.14.2.1).
  init(disconnectReason code: Int32) {
    self =
      switch UInt32(code) {
      case MQTT_RC_SESSION_TAKEN_OVER.rawValue: .refused("another client has connected with the same client id")
      case MQTT_RC_SERVER_SHUTTING_DOWN.rawValue: .unreachable("it is shutting down")
      default: .unreachable("it ended the connection: \(String(cString: mosquitto_reason_string(code)))")
      }
  }
}
