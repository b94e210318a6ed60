// SPDX-License-Identifier: Apache-2.0
package import JSONValues

package struct PendingResponse: Codable, Sendable {
  /// Newest first.
  package var requests: [PendingSummary]
  /// Servers that are not reachable now.
  package var unreachable: [String]
  /// Number of the error catalog for the first of them; nil if all are reachable.
  package var number: Int?

  package init(requests: [PendingSummary], unreachable: [String], number: Int? = nil) {
    self.requests = requests
    self.unreachable = unreachable
    self.number = number
  }
}

package struct PendingSummary: Codable, Sendable {
  package var transaction: String
  package var account: String
  package var server: String
  package var type: String?
  /// The server's name of the kind of request, for programs.
  package var pushType: String?
  /// The text of the pending list. Not verified at every server: see `verified`.
  package var message: String?
  /// What the server has signed; only for the request on the panel.
  package var verified: VerifiedSummary?
  /// The options that the portal may show.
  package var choices: [Choice]?
  /// The numbers of which the login page shows one, if the operator wants them shown.
  package var numbers: [Int]?
  /// Why the account is locked; the panel does not show the request while the lock lasts.
  package var locked: String?
  /// The origin of the login and data that its journey added. An attacker who starts a login can influence both.
  /// JSON values if the server sends JSON, otherwise text.
  package var context: JSONValue?
  package var payload: JSONValue?
  /// Whether the panel shows this request now.
  package var isOnPanel = false
  /// Whether a press that begins now answers this request.
  package var pressCounts = false
  /// While the panel shows the request: why it can only be denied; nil if it can be approved.
  package var obstacle: String?
  /// The server is not reachable: the request may have ended, and newer requests may be missing.
  package var isStale = false
  /// Milliseconds since 1970, by the server's clock.
  package var sentAtMilliseconds: Int64?
  /// From when it was sent until it expires.
  package var timeToLiveSeconds: Int64?
  package var expiresInSeconds: Int64

  package init(transaction: String, account: String, server: String, expiresInSeconds: Int64) {
    self.transaction = transaction
    self.account = account
    self.server = server
    self.expiresInSeconds = expiresInSeconds
  }

  package struct Choice: Codable, Sendable {
    /// The digits to type on the keypad: the option itself if it is a number, otherwise its position.
    package var key: String
    package var option: String

    package init(key: String, option: String) {
      self.key = key
      self.option = option
    }

    /// For display, such as "1 dark blue".
    package var description: String { key == option ? option : "\(key) \(option)" }
  }

  enum CodingKeys: String, CodingKey {
    case transaction, account, server, type, message, verified, choices, numbers, locked, context, payload
    case pushType = "push_type"
    case isOnPanel = "on_panel"
    case pressCounts = "press_counts"
    case obstacle = "can_only_be_denied"
    case isStale = "stale"
    case sentAtMilliseconds = "sent_at_ms"
    case timeToLiveSeconds = "time_to_live_seconds"
    case expiresInSeconds = "expires_in_seconds"
  }
}
