// What the running service and the commands say to each other over the control socket: one JSON line there, one or
// more JSON lines back. The socket is in the state directory, so only the token's own user can reach it.

enum ControlRequest: String, Codable, Sendable, CaseIterable {
  case status, pending, reload
  case enrol, forget, push
  case logIn = "log-in"
  case logOut = "log-out"
  case changePIN = "change-pin"
  case oneTimePassword = "one-time-password"
  /// Simulated board only.
  case hold, double, led, keys
  /// A hold as long as the board's profile wants for "not me".
  case notMe = "not-me"
  case followLED = "follow-led"
}

struct ControlCall: Codable, Sendable {
  var request: ControlRequest
  /// For `hold`.
  var milliseconds: Int64?
  /// For `keys`.
  var keys: [String]?
  /// For `enrol`: the activation URI or enrolment URL.
  var uri: String?
  /// For `enrol`: a PEM file.
  var authorities: String?
  /// For `enrol`: SHA-256 of the server's public key, in Base64.
  var pins: [String]?
  /// For `enrol`: whether pins of earlier enrollments at the server are taken away.
  var dropsPins: Bool?
  /// For `enrol` of one-time passwords: whether a PIN is chosen that has the secret.
  var asksPIN: Bool?
  /// For `enrol` at PingAM: where AM is told to have messages brought.
  var mailbox: String?
  /// For `push`: the message as it came, JSON.
  var message: String?
  /// What is meant, or for `enrol` how it shall be called.
  var account: String?
}

struct ControlFailure: Codable, Sendable {
  var error: String
  /// Exit code of sysexits(3).
  var code: Int32
}

/// A line before the answer: what is being done, for the person who waits.
struct ControlProgress: Codable, Sendable {
  var progress: String
}

struct AccountFacts: Codable, Sendable {
  var account: String
  var server: String
  var profile: String
}

struct SessionFacts: Codable, Sendable {
  /// Nil when nobody is logged in.
  var account: String?
  var secondsLeft: Int64?
  /// Whether the token server knows that a former session has ended (10009 if not).
  var serverTold: Bool?

  enum CodingKeys: String, CodingKey {
    case account
    case secondsLeft = "seconds_left"
    case serverTold = "server_told"
  }
}

struct CodeFacts: Codable, Sendable {
  var account: String
  var code: String
  /// Of a code that a counter makes.
  var counter: UInt64?
  /// Seconds since 1970, of a code that time makes.
  var validFrom: Int64?
  var validUntil: Int64?

  enum CodingKeys: String, CodingKey {
    case account, code, counter
    case validFrom = "valid_from"
    case validUntil = "valid_until"
  }
}

struct RemovalFacts: Codable, Sendable {
  var removed: String
  /// Whether the token server knows it (10003 if not).
  var serverTold: Bool

  enum CodingKeys: String, CodingKey {
    case removed
    case serverTold = "server_told"
  }
}

struct PushFacts: Codable, Sendable {
  var account: String
  /// It came before, and nothing has changed.
  var isKnown: Bool

  enum CodingKeys: String, CodingKey {
    case account
    case isKnown = "known"
  }
}

struct Done: Codable, Sendable {
  var done = true
  /// Why what was done counted for nothing; nil if it may have counted.
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
  /// What is wrong with the board's hardware: nothing can be approved, or no PIN be typed, until that has ended.
  var troubles: [String]?
  var led: LEDStatus?
  var servers: [Server]
  var accounts: Int
  var mustEnrol: Int
  /// Of accounts with a PIN, as far as their judges have told.
  var pins: [PIN]?
  var loggedIn: String?
  var pending: Int?
  /// What is pending, newest first.
  var requests: [PendingSummary]?
  /// What the panel asks about.
  var panel: PanelStatus?
  /// Accounts that this token lost while somebody used them, since the service started.
  var lost: [String]?
  /// What has to be typed into portals to finish logins that this token has just accepted.
  var codes: [Code]?

  /// Answers that their token servers have not confirmed: still being delivered, or to be asked about.
  var unconfirmed: [Unconfirmed]?

  struct Unconfirmed: Codable, Sendable {
    var transaction: String
    var account: String
    var server: String
  }

  struct Code: Codable, Sendable {
    var account: String
    var code: String
    /// What the portal's administrator says about it.
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
    case mustEnrol = "must_enrol"
    case pins
    case loggedIn = "logged_in"
    case pending, requests, panel, lost, codes, unconfirmed
  }
}

struct PanelStatus: Codable, Sendable {
  /// The request's transaction; nil while none is asked about.
  var request: String?
  /// Whether a press that begins now counts.
  var pressCounts: Bool
  /// Why not.
  var reason: String?

  enum CodingKeys: String, CodingKey {
    case request
    case pressCounts = "press_counts"
    case reason
  }
}

struct LEDStatus: Codable, Sendable {
  /// What the LED says.
  var meaning: String
  /// What it shows at this instant; nil is dark. Only a simulated LED can be read.
  var colour: String?
}

struct PendingFacts: Codable, Sendable {
  /// Newest first.
  var requests: [PendingSummary]
  /// Servers that cannot be reached now.
  var unreachable: [String]
}

struct PendingSummary: Codable, Sendable {
  var transaction: String
  var account: String
  var server: String
  var type: String?
  var message: String?
  /// What to type for each of the options that the portal may show: "1 dark blue, 2 green"; the numbers themselves
  /// where the options are numbers.
  var choices: String?
  /// Why the account cannot be used now: nobody is asked while that lasts.
  var locked: String?
  /// Where the login comes from and what its journey added, as whoever logs in had a hand in it.
  var context: String?
  var payload: String?
  /// The panel asks about it now.
  var isOnPanel = false
  /// Whether a press that begins now counts for it.
  var pressCounts = false
  /// Its server cannot be reached: it may have ended, and newer ones be missing.
  var isStale = false
  /// By the server's clock.
  var sentAtMilliseconds: Int64?
  var expiresInSeconds: Int64

  enum CodingKeys: String, CodingKey {
    case transaction, account, server, type, message, choices, locked, context, payload
    case isOnPanel = "on_panel"
    case pressCounts = "press_counts"
    case isStale = "stale"
    case sentAtMilliseconds = "sent_at_ms"
    case expiresInSeconds = "expires_in_seconds"
  }
}
