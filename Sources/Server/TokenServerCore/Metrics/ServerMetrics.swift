// SPDX-License-Identifier: Apache-2.0
import CoreMetrics
import ReferenceProtocol

/// The metrics of the server, for the implementation of swift-metrics that the process has chosen; without one nothing
/// is stored. Labels are routes, states and other words of this program, never anything that a client wrote.
package enum ServerMetrics {
  /// The help text of each metric, by its name.
  package static let descriptions = [
    "token_server_http_requests_total": "HTTP requests by method, route and status.",
    "token_server_http_request_seconds":
      "From a request's head to its response's head, by route, without event streams.",
    "token_server_transactions_ended_total": "Transactions that ended, by state.",
    "token_server_transaction_delivery_seconds":
      "From the start of a transaction until it was sent to its device in a list, or reported by it.",
    "token_server_transaction_answer_seconds": "From the start of a transaction to the user's answer.",
    "token_server_pin_attempts_total": "Verified PINs: right, wrong, or wrong with no attempt left.",
    "token_server_authenticator_attempts_total": "Verified authenticators other than PINs, by kind and result.",
    "token_server_connections_refused_total": "Connections refused at a limit: of the server, of a source address.",
    "token_server_transactions_open": "Transactions that wait for an answer.",
    "token_server_devices_connected": "Devices by event stream and by long poll.",
    "token_server_callbacks_waiting": "Callbacks to portals that are not delivered yet.",
    "token_server_database_bytes": "The size of the database.",
    "token_server_database_waiting": "Database transactions that wait.",
    "token_server_database_connections": "Connections to PostgreSQL for requests, by state: used, idle.",
    "token_server_database_connection_failures_total":
      "Connections to PostgreSQL that were lost, or could not be opened.",
    "token_server_database_conflicts_total":
      "Changes that PostgreSQL canceled for a concurrent one. They are repeated.",
    "token_server_clock_difference_seconds": "How much PostgreSQL's clock is ahead of this server's.",
    "token_server_database_wait_seconds": "How long transactions waited for a connection to PostgreSQL.",
  ]

  /// Creates the series whose labels are known, with the value 0: `increase()` does not count the first event of a
  /// counter that appears with it.
  /// - Parameter isPooled: whether the database has several connections.
  package static func begin(isPooled: Bool) {
    for state in ["authenticated", "rejected", "failed", "expired", "cancelled", "superseded"] { ended(state, by: 0) }
    for result in ["right", "wrong", "limit_reached"] { attempted(result, by: 0) }
    for kind in ServerConfiguration.Authenticator.Kind.allCases {
      for result in ["right", "wrong", "deregistered"] { attempted(result, with: kind, by: 0) }
    }
    for limit in ConnectionLimit.allCases { countRefusedConnection(at: limit, by: 0) }
    _ = timer("token_server_transaction_answer_seconds", [])
    _ = timer("token_server_transaction_delivery_seconds", [])
    guard isPooled else { return }
    _ = timer("token_server_database_wait_seconds", [])
    for label in ["connection_failures", "conflicts"] { _ = Counter(label: "token_server_database_\(label)_total") }
  }

  /// The same for a route: the statuses that its server counts as faults, and 400 and 401, by which codes are guessed.
  package static func begin(route: String, method: String) {
    for status in ["400", "401", "500", "503"] {
      _ = Counter(
        label: "token_server_http_requests_total",
        dimensions: [("method", method), ("route", route), ("status", status)])
    }
  }

  private static func ended(_ state: String, by count: Int64 = 1) {
    Counter(label: "token_server_transactions_ended_total", dimensions: [("state", state)]).increment(by: count)
  }

  private static func attempted(_ result: String, by count: Int64 = 1) {
    Counter(label: "token_server_pin_attempts_total", dimensions: [("result", result)]).increment(by: count)
  }

  /// - Parameters:
  ///   - route: the route's pattern; nil if no route matched.
  ///   - duration: to the head of the response.
  package static func count(request method: String, route: String?, status: Int, after duration: Duration) {
    let isKnown = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"].contains(method)
    let route = route ?? "none"
    Counter(
      label: "token_server_http_requests_total",
      dimensions: [("method", isKnown ? method : "other"), ("route", route), ("status", "\(status)")]
    ).increment()
    if route != "/device/v1/events" {
      timer("token_server_http_request_seconds", [("route", route)]).recordNanoseconds(duration.nanoseconds)
    }
  }

  package static func count(_ ending: Effects.Ending) {
    ended(ending.state.rawValue)
    guard ending.state == .authenticated || ending.state == .rejected else { return }
    timer("token_server_transaction_answer_seconds", []).recordNanoseconds(ending.after.nanoseconds)
  }

  /// A request was delivered to its device.
  /// - Parameter duration: from the start of its transaction.
  package static func countDelivery(after duration: Duration) {
    timer("token_server_transaction_delivery_seconds", []).recordNanoseconds(max(.zero, duration).nanoseconds)
  }

  /// The limits of connections: of all, and of those from one source address or network.
  package enum ConnectionLimit: String, CaseIterable, Sendable { case all, source }

  package static func countRefusedConnection(at limit: ConnectionLimit, by count: Int64 = 1) {
    Counter(label: "token_server_connections_refused_total", dimensions: [("limit", limit.rawValue)]).increment(
      by: count)
  }

  package static func countDatabaseWait(of duration: Duration) {
    timer("token_server_database_wait_seconds", []).recordNanoseconds(max(.zero, duration).nanoseconds)
  }

  package static func countDatabaseConnectionFailure() {
    Counter(label: "token_server_database_connection_failures_total").increment()
  }

  package static func countDatabaseConflict() { Counter(label: "token_server_database_conflicts_total").increment() }

  static func count(_ outcome: PINVerificationOutcome) {
    let result =
      switch outcome {
      case .right: "right"
      case .wrong: "wrong"
      case .limitReached: "limit_reached"
      }
    attempted(result)
  }

  /// - Parameter result: `right`, `wrong`, `deregistered`, `not_run` or `no_result`.
  static func attempted(
    _ result: String, with kind: ServerConfiguration.Authenticator.Kind, by count: Int64 = 1
  ) {
    Counter(
      label: "token_server_authenticator_attempts_total", dimensions: [("kind", kind.rawValue), ("result", result)]
    ).increment(by: count)
  }

  private static func timer(_ label: String, _ dimensions: [(String, String)]) -> Timer {
    Timer(label: label, dimensions: dimensions)
  }
}

extension Duration {
  /// Bounded by what an `Int64` holds.
  fileprivate var nanoseconds: Int64 {
    let (whole, isOverflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !isOverflow else { return components.seconds < 0 ? .min : .max }
    let (sum, isTooMuch) = whole.addingReportingOverflow(components.attoseconds / 1_000_000_000)
    return isTooMuch ? .max : sum
  }
}
