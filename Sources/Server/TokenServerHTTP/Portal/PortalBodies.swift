// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Response bodies of the mobile authentication API. Members may be added, never removed.
enum PortalBody {
  struct EnabledTypes: Encodable {
    var enabled: [String]
  }

  /// An application, in version 3.
  struct Application: Encodable {
    var id: String
    var name: String
  }

  /// An enrolled device, in version 4.
  struct EnrolledDevice: Encodable {
    var appID: String
    var appName: String
    var deviceID: String
    var deviceName: String
    var platform: String

    enum CodingKeys: String, CodingKey {
      case appID = "app_id"
      case appName = "app_name"
      case deviceID = "device_id"
      case deviceName = "device_name"
      case platform
    }
  }

  struct Option<Enrollment: Encodable>: Encodable {
    var type: String
    var method: String
    var smsFallbackAllowed = false
    var appsEnrolledForPush: [Enrollment]

    enum CodingKeys: String, CodingKey {
      case type, method
      case smsFallbackAllowed = "sms_fallback_allowed"
      case appsEnrolledForPush = "apps_enrolled_for_push"
    }
  }

  struct EnabledOptions<Enrollment: Encodable>: Encodable {
    var enabled: [Option<Enrollment>]
  }

  struct Started: Encodable {
    struct Device: Encodable {
      var name: String
      var platform: String
    }

    var transactionID: String
    var authMethod: String
    /// How long the request stays open, in milliseconds.
    var timeToLive: Int64
    var device: Device

    enum CodingKeys: String, CodingKey {
      case transactionID = "transaction_id"
      case authMethod = "auth_method"
      case timeToLive = "time_to_live"
      case device
    }
  }
}

/// The response of `GET …/transaction/{id}`.
struct TransactionResult: Encodable, Equatable {
  struct Reason: Encodable, Equatable {
    var reason: String
    var description: String
  }

  var callbackURI: String
  var transactionID: String
  /// When the request was sent, milliseconds since 1970.
  var timestamp: Int64
  var userID: String
  var isAuthenticated: Bool
  /// Set after an answer: the method that was used, also if it was a fallback.
  var authenticationMethod: String?
  /// Set for requests that need a PIN, and for those answered with it.
  var usedAuthenticationAttempts: Int?
  /// Set when the request has finally failed.
  var notAuthenticatedReason: Reason?

  enum CodingKeys: String, CodingKey {
    case callbackURI = "callback_uri"
    case transactionID = "transaction_id"
    case timestamp
    case userID = "user_id"
    case isAuthenticated = "is_authenticated"
    case authenticationMethod = "authentication_method"
    case usedAuthenticationAttempts = "used_authentication_attempts"
    case notAuthenticatedReason = "not_authenticated_reason"
  }

  init(_ transaction: Transaction) {
    callbackURI = transaction.callbackURI
    transactionID = transaction.id
    timestamp = transaction.createdAt.milliseconds
    userID = transaction.userID.text
    isAuthenticated = transaction.state == .authenticated
    let wasAnswered =
      transaction.receipt != nil || transaction.reason == .invalidAnswer || transaction.attempts > 0
    let method = transaction.methodUsed ?? transaction.method
    authenticationMethod = wasAnswered ? method.rawValue : nil
    usedAuthenticationAttempts = method == .pushWithPIN ? transaction.pinAttempts : nil
    notAuthenticatedReason = transaction.reason.map { Reason(reason: $0.rawValue, description: $0.description) }
  }
}
