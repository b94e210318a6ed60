// What the running service and the commands say to each other over the control socket: one JSON line there, one or
// more JSON lines back. The socket is in the state directory, so only the token's own user can reach it.

enum ControlRequest: String, Codable, Sendable, CaseIterable {
  case status, pending, reload
  /// Simulated board only.
  case hold, double, led
  case followLED = "follow-led"
}

struct ControlCall: Codable, Sendable {
  var request: ControlRequest
  /// For `hold`.
  var milliseconds: Int64?
}

struct ControlFailure: Codable, Sendable {
  var error: String
}

struct Done: Codable, Sendable {
  var done = true
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
  var led: LEDStatus?
  var servers: [Server]
  var accounts: Int
  var mustEnrol: Int
  var pending: Int?

  enum CodingKeys: String, CodingKey {
    case running
    case processID = "process_id"
    case board
    case isSimulated = "simulated"
    case led, servers, accounts
    case mustEnrol = "must_enrol"
    case pending
  }
}

struct LEDStatus: Codable, Sendable {
  /// What the LED says.
  var meaning: String
  /// What it shows at this instant; nil is dark. Only a simulated LED can be read.
  var colour: String?
}

struct PendingSummary: Codable, Sendable {
  var transaction: String
  var account: String
  var server: String
  var type: String?
  var message: String?
  var expiresInSeconds: Int64

  enum CodingKeys: String, CodingKey {
    case transaction, account, server, type, message
    case expiresInSeconds = "expires_in_seconds"
  }
}
