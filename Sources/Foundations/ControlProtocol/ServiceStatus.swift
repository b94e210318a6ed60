// SPDX-License-Identifier: Apache-2.0
package struct ServiceStatus: Codable, Sendable {
  package struct Server: Codable, Sendable {
    package var server: String
    package var connection: String

    package init(server: String, connection: String) {
      self.server = server
      self.connection = connection
    }
  }

  package var running: Bool
  /// What starts the service; nil if it runs.
  package var remedy: String?
  package var processID: Int32?
  package var board: String?
  package var isSimulated: Bool?
  /// Whether another process uses the network, and this one does not.
  package var isNetworkSeparate: Bool?
  /// The socket of that process.
  package var networkSocket: String?
  /// Whether the service stops as soon as the answer at the panel has ended.
  package var isStopping: Bool?
  /// Hardware faults of the board. While one lasts, approvals or PIN entry are not possible.
  package var troubles: [String]?
  package var led: LEDStatus?
  package var servers: [Server]
  /// The number of accounts; nil if it is unknown.
  package var accounts: Int?
  package var mustEnroll: Int?
  /// Why the accounts are unknown; nil if they are known.
  package var accountsUnknown: String?
  /// PIN attempt counts of accounts with a PIN, as last reported by the verifiers.
  package var pins: [PIN]?
  package var loggedIn: String?
  package var pending: Int?
  /// Pending requests, newest first.
  package var requests: [PendingSummary]?
  /// The state of the panel.
  package var panel: PanelStatus?
  /// Accounts that were revoked or wiped while in use, since the service started.
  package var lost: [String]?
  /// Codes that users must type into portals to finish logins that were just approved.
  package var codes: [Code]?

  /// Answers without a confirmation of the token server: being delivered, or the status is still to be queried.
  package var unconfirmed: [Unconfirmed]?

  package init(running: Bool, accounts: Int, mustEnroll: Int) {
    self.running = running
    servers = []
    self.accounts = accounts
    self.mustEnroll = mustEnroll
  }

  /// Without a running service, and without its vault.
  package init(accountsUnknown why: String) {
    running = false
    servers = []
    accountsUnknown = why
  }

  package struct Unconfirmed: Codable, Sendable {
    package var transaction: String
    package var account: String
    package var server: String

    package init(transaction: String, account: String, server: String) {
      self.transaction = transaction
      self.account = account
      self.server = server
    }
  }

  package struct Code: Codable, Sendable {
    package var account: String
    /// The request that was approved.
    package var transaction: String
    package var code: String
    /// The text of the portal's operator about the code.
    package var message: String
    /// Milliseconds since 1970, by the token's clock.
    package var receivedAtMilliseconds: Int64
    package var expiresInSeconds: Int64

    package init(
      account: String, transaction: String, code: String, message: String, receivedAtMilliseconds: Int64,
      expiresInSeconds: Int64
    ) {
      self.account = account
      self.transaction = transaction
      self.code = code
      self.message = message
      self.receivedAtMilliseconds = receivedAtMilliseconds
      self.expiresInSeconds = expiresInSeconds
    }

    enum CodingKeys: String, CodingKey {
      case account, transaction, code, message
      case receivedAtMilliseconds = "received_at_ms"
      case expiresInSeconds = "expires_in_seconds"
    }
  }

  package struct PIN: Codable, Sendable {
    package var account: String
    package var maxFailureCount: Int
    package var previousFailureCount: Int
    package var remainingFailureCount: Int

    package init(account: String, maxFailureCount: Int, previousFailureCount: Int, remainingFailureCount: Int) {
      self.account = account
      self.maxFailureCount = maxFailureCount
      self.previousFailureCount = previousFailureCount
      self.remainingFailureCount = remainingFailureCount
    }

    enum CodingKeys: String, CodingKey {
      case account
      case maxFailureCount = "max_failure_count"
      case previousFailureCount = "previous_failure_count"
      case remainingFailureCount = "remaining_failure_count"
    }
  }

  enum CodingKeys: String, CodingKey {
    case running, remedy
    case processID = "process_id"
    case board
    case isSimulated = "simulated"
    case isNetworkSeparate = "network_process"
    case networkSocket = "network_socket"
    case isStopping = "stopping"
    case troubles, led, servers, accounts
    case mustEnroll = "must_enroll"
    case accountsUnknown = "accounts_unknown"
    case pins
    case loggedIn = "logged_in"
    case pending, requests, panel, lost, codes, unconfirmed
  }
}

package struct PanelStatus: Codable, Sendable {
  /// The request's transaction; nil if no request is shown.
  package var request: String?
  /// Whether a press that begins now is accepted.
  package var pressCounts: Bool
  /// Why a press is ignored.
  package var reason: String?
  /// Why the request can only be denied; nil if it can be approved.
  package var obstacle: String?

  package init(request: String?, pressCounts: Bool, reason: String?, obstacle: String?) {
    self.request = request
    self.pressCounts = pressCounts
    self.reason = reason
    self.obstacle = obstacle
  }

  enum CodingKeys: String, CodingKey {
    case request
    case pressCounts = "press_counts"
    case reason
    case obstacle = "can_only_be_denied"
  }
}

package struct LEDStatus: Codable, Sendable, Equatable {
  /// The meaning of the LED.
  package var meaning: String
  /// The color of the pattern, also while it is dark.
  package var color: String
  /// Whether the LED is lit at this instant.
  package var isLit: Bool
  /// The number that the blinks count: pending requests, or remaining attempts; nil if they count nothing.
  package var count: Int?
  /// The number of entries submitted at the keypad from the start of the service to this state of the LED. With a
  /// greater number than before an entry, `meaning` is the reaction to that entry, a later one, or still the prompt
  /// that it ended.
  package var entries: Int?

  package init(meaning: String, color: String, isLit: Bool, count: Int?, entries: Int) {
    self.meaning = meaning
    self.color = color
    self.isLit = isLit
    self.count = count
    self.entries = entries
  }

  enum CodingKeys: String, CodingKey {
    case meaning, color
    case isLit = "lit"
    case count, entries
  }
}
