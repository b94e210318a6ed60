// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness

/// A portal that consists of curl commands.
struct Portal: Sendable {
  let base: @Sendable () -> String
  let authority: String
  let credentials: String
  /// A command that runs curl, for example under another clock.
  var launcher: [String] = []

  struct Reply: Sendable {
    let status: Int
    let outcome: Outcome
  }

  /// - Parameter fields: sent as a form if not empty.
  func call(_ method: String, _ path: String, _ fields: KeyValuePairs<String, String> = [:]) async throws -> Reply {
    let form = fields.flatMap { ["--data-urlencode", "\($0)=\($1)"] }
    let line =
      launcher + [
        "curl", "-sS", "-m", "60", "--cacert", authority, "-u", credentials, "-X", method, "-w",
        "%{stderr}%{http_code}",
      ] + form + [base() + "/oauth/api/v4" + path]
    let outcome = try await run(line[0], Array(line.dropFirst())).succeeded()
    guard let status = Int(outcome.errors) else {
      throw OutputTimeoutError(description: "an HTTP status in \(outcome)")
    }
    return Reply(status: status, outcome: outcome)
  }

  /// Starts a mobile authentication request.
  /// - Returns: the transaction's id.
  func ask(
    _ user: String = "alice", on device: String, type: String = "login", callback: String = "http://127.0.0.1:9/",
    message: String = "Log in to the test?"
  ) async throws -> String {
    struct Started: Decodable { let transactionId: String }
    let reply = try await call(
      "POST", "/authenticate/user",
      ["type": type, "user_id": user, "device_id": device, "callback_uri": callback, "message": message]
    )
    return try reply.outcome.decoded(Started.self).transactionId
  }

  struct Result: Decodable, Sendable {
    struct Reason: Decodable, Sendable { let reason: String }

    let transactionId: String
    let isAuthenticated: Bool
    let notAuthenticatedReason: Reason?
    let usedAuthenticationAttempts: Int?
    let authenticationMethod: String?

    var reason: String? { notAuthenticatedReason?.reason }
  }

  func result(of transaction: String) async throws -> Result {
    try await call("GET", "/authenticate/transaction/\(transaction)").outcome.decoded()
  }

  /// Polls as portals do, until the transaction is approved or has finally failed.
  func finalResult(of transaction: String) async throws -> Result {
    try await eventually("an end of \(transaction)") {
      let result = try await result(of: transaction)
      return result.isAuthenticated || result.reason != nil ? result : nil
    }
  }

  /// - Returns: the HTTP status.
  @discardableResult
  func cancel(_ transaction: String) async throws -> Int {
    try await call("DELETE", "/authenticate/transaction/\(transaction)").status
  }

  struct Device: Decodable, Sendable {
    let id: String
    let mobileAuthenticationEnabled: Bool
    let pushAuthenticationEnabled: Bool
  }

  func devices(of user: String = "alice") async throws -> [Device] {
    struct Devices: Decodable { let devices: [Device] }
    let reply = try await call("GET", "/users/\(user)/devices")
    return reply.status == 404 ? [] : try reply.outcome.decoded(Devices.self).devices
  }
}
