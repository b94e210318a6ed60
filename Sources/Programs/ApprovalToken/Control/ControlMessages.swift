// SPDX-License-Identifier: Apache-2.0
import JSONValues

// The messages between the running service and the commands on the control socket: a request is one JSON line, the
// reply is one or more JSON lines. The socket is in the state directory, so only the token's own Unix user can connect.

enum ControlRequest: String, Codable, Sendable, CaseIterable {
  case status, pending, reload
  case enroll, forget, push
  case logIn = "log-in"
  case logOut = "log-out"
  case changePIN = "change-pin"
  case oneTimePassword = "one-time-password"
  /// Simulated board only.
  case hold, double, led, keys
  /// A hold with the duration for "not me" from the board profile.
  case notMe = "not-me"
  case followLED = "follow-led"
}

struct ControlCall: Codable, Sendable {
  var request: ControlRequest
  /// For `hold`.
  var milliseconds: Int64?
  /// For `keys`.
  var keys: [String]?
  /// For `enroll`: the enrollment URI.
  var uri: String?
  /// For `enroll`: a PEM file.
  var authorities: String?
  /// For `enroll`: SHA-256 of the server's public key, in Base64.
  var pins: [String]?
  /// For `enroll`: whether the pins of earlier enrollments at the server are removed.
  var dropsPins: Bool?
  /// For `enroll` of one-time passwords: whether the user chooses a PIN that protects the secret.
  var asksPIN: Bool?
  /// For `enroll` at PingAM: the topic where AM shall deliver messages.
  var mailbox: String?
  /// For `push`: the message as received, JSON.
  var message: String?
  /// The account; for `enroll`, the name of the new account.
  var account: String?
}

struct ControlFailure: Codable, Sendable {
  var error: String
  /// Exit code of sysexits(3).
  var code: Int32
  /// See `CommandFailure.number`.
  var number: Int?
}

/// A line before the answer: the current step, for the waiting user.
struct ControlProgress: Codable, Sendable {
  var progress: String
}

struct AccountResponse: Codable, Sendable {
  var account: String
  var server: String
  var profile: String
}

struct SessionResponse: Codable, Sendable {
  /// Nil when no user is logged in.
  var account: String?
  var secondsLeft: Int64?
  /// Whether the token server confirmed that the former session has ended (error 10009 if not).
  var serverNotified: Bool?

  enum CodingKeys: String, CodingKey {
    case account
    case secondsLeft = "seconds_left"
    case serverNotified = "server_notified"
  }
}

struct CodeResponse: Codable, Sendable {
  var account: String
  var code: String
  /// The counter value of an HOTP code.
  var counter: UInt64?
  /// The validity of a TOTP code, in seconds since 1970.
  var validFrom: Int64?
  var validUntil: Int64?

  enum CodingKeys: String, CodingKey {
    case account, code, counter
    case validFrom = "valid_from"
    case validUntil = "valid_until"
  }
}

struct RemovalResponse: Codable, Sendable {
  var removed: String
  /// Whether the token server confirmed the removal (error 10003 if not).
  var serverNotified: Bool

  enum CodingKeys: String, CodingKey {
    case removed
    case serverNotified = "server_notified"
  }
}

struct PushResponse: Codable, Sendable {
  var account: String
  /// The message was received before; the store is unchanged.
  var isKnown: Bool

  enum CodingKeys: String, CodingKey {
    case account
    case isKnown = "known"
  }
}

struct Done: Codable, Sendable {
  var done = true
  /// Why the action was ignored; nil if it may have had an effect.
  var ignored: String?
}

struct ServiceStatus: Codable, Sendable {
  struct Server: Codable, Sendable {
    var server: String
    var connection: String
  }

  var running: Bool
  var processID: Int32?
  var board: String?
  var isSimulated: Bool?
  /// Hardware faults of the board. While one lasts, approvals or PIN entry are not possible.
  var troubles: [String]?
  var led: LEDStatus?
  var servers: [Server]
  var accounts: Int
  var mustEnroll: Int
  /// PIN attempt counts of accounts with a PIN, as last reported by the verifiers.
  var pins: [PIN]?
  var loggedIn: String?
  var pending: Int?
  /// Pending requests, newest first.
  var requests: [PendingSummary]?
  /// The state of the panel.
  var panel: PanelStatus?
  /// Accounts that were revoked or wiped while in use, since the service started.
  var lost: [String]?
  /// Codes that users must type into portals to finish logins that were just approved.
  var codes: [Code]?

  /// Answers without a confirmation of the token server: being delivered, or the status is still to be queried.
  var unconfirmed: [Unconfirmed]?

  struct Unconfirmed: Codable, Sendable {
    var transaction: String
    var account: String
    var server: String
  }

  struct Code: Codable, Sendable {
    var account: String
    var code: String
    /// The text of the portal's operator about the code.
    var message: String
  }

  struct PIN: Codable, Sendable {
    var account: String
    var maxFailureCount: Int
    var previousFailureCount: Int
    var remainingFailureCount: Int

    enum CodingKeys: String, CodingKey {
      case account
      case maxFailureCount = "max_failure_count"
      case previousFailureCount = "previous_failure_count"
      case remainingFailureCount = "remaining_failure_count"
    }
  }

  enum CodingKeys: String, CodingKey {
    case running
    case processID = "process_id"
    case board
    case isSimulated = "simulated"
    case troubles, led, servers, accounts
    case mustEnroll = "must_enroll"
    case pins
    case loggedIn = "logged_in"
    case pending, requests, panel, lost, codes, unconfirmed
  }
}

struct PanelStatus: Codable, Sendable {
  /// The request's transaction; nil if no request is shown.
  var request: String?
  /// Whether a press that begins now is accepted.
  var pressCounts: Bool
  /// Why a press is ignored.
  var reason: String?

  enum CodingKeys: String, CodingKey {
    case request
    case pressCounts = "press_counts"
    case reason
  }
}

struct LEDStatus: Codable, Sendable {
  /// The meaning of the LED.
  var meaning: String
  /// The color at this instant; nil if dark. Only a simulated LED can be read.
  var color: String?
  /// The number of entries submitted at the keypad from the start of the service to the reading of `meaning`. A meaning
  /// with a greater number than before an entry is newer than that entry.
  var entries: Int?
}

struct PendingResponse: Codable, Sendable {
  /// Newest first.
  var requests: [PendingSummary]
  /// Servers that are not reachable now.
  var unreachable: [String]
}

struct PendingSummary: Codable, Sendable {
  var transaction: String
  var account: String
  var server: String
  var type: String?
  var message: String?
  /// The options that the portal may show.
  var choices: [Choice]?
  /// Why the account is locked; the panel does not show the request while the lock lasts.
  var locked: String?
  /// The origin of the login and data that its journey added. An attacker who starts a login can influence both.
  /// JSON values if the server sends JSON, otherwise text.
  var context: JSONValue?
  var payload: JSONValue?
  /// Whether the panel shows this request now.
  var isOnPanel = false
  /// Whether a press that begins now answers this request.
  var pressCounts = false
  /// The server is not reachable: the request may have ended, and newer requests may be missing.
  var isStale = false
  /// Milliseconds since 1970, by the server's clock.
  var sentAtMilliseconds: Int64?
  var expiresInSeconds: Int64

  struct Choice: Codable, Sendable {
    /// The digits to type on the keypad: the option itself if it is a number, otherwise its position.
    var key: String
    var option: String

    /// For display, such as "1 dark blue".
    var description: String { key == option ? option : "\(key) \(option)" }
  }

  enum CodingKeys: String, CodingKey {
    case transaction, account, server, type, message, choices, locked, context, payload
    case isOnPanel = "on_panel"
    case pressCounts = "press_counts"
    case isStale = "stale"
    case sentAtMilliseconds = "sent_at_ms"
    case expiresInSeconds = "expires_in_seconds"
  }
}
