// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSONSchema
import ServerTestSupport
import Testing

private let description = Result { try OpenAPIDescription() }

/// Requires that a response is as the OpenAPI description says.
/// - Parameter path: as requested.
@discardableResult
func checked(_ reply: Curl.Reply, _ method: String, _ path: String) throws -> Curl.Reply {
  let violations = try description.get().violations(in: reply.body, status: reply.status, of: method, path)
  #expect(violations.isEmpty, "\(reply.text)")
  return reply
}

/// A portal that uses curl.
struct Portal {
  let server: TokenServerProcess
  let id: String
  let secret: String

  init(_ server: TokenServerProcess, _ options: String...) throws {
    self.server = server
    (id, secret) = try server.addPortal("portal")
  }

  var api: String { server.url + "/oauth/api/v4" }

  func get(_ path: String) throws -> Curl.Reply {
    try checked(server.curl("--user", "\(id):\(secret)", server.url + path), "GET", path)
  }

  func send(_ method: String, _ path: String, _ arguments: String...) throws -> Curl.Reply {
    try checked(
      server.curl(["--user", "\(id):\(secret)", "--request", method] + arguments + [server.url + path]), method, path)
  }

  /// `POST …/authenticate/user`; a nil value omits the field.
  func start(_ fields: [String: String?] = [:], version: String = "v4") throws -> Curl.Reply {
    var all: [String: String?] = [
      "type": "login", "user_id": "alice", "callback_uri": "http://127.0.0.1:9/none", "message": "Log in?",
    ]
    all.merge(fields) { $1 }
    let form = all.compactMap { name, value in value.map { "\(name)=\($0)" } }.sorted()
    let path = "/oauth/api/\(version)/authenticate/user"
    return try checked(
      server.curl(
        ["--user", "\(id):\(secret)"] + form.flatMap { ["--data-urlencode", $0] } + [server.url + path]), "POST", path)
  }

  /// Starts a transaction and returns its id.
  func transaction(_ fields: [String: String?]) throws -> String {
    let reply = try start(fields).expect(200)
    return reply.json["transaction_id"] as? String ?? ""
  }

  func result(_ transaction: String) throws -> [String: any Sendable] {
    try get("/oauth/api/v4/authenticate/transaction/\(transaction)").expect(200).json
  }
}

private let login = """
  [[type]]
  name = "login"
  method = "push"
  request_expires_in = 600
  """

/// A configuration with these types, after the general settings.
func configuration(_ settings: String = "", types: String? = nil) -> String { settings + "\n" + (types ?? login) }

extension [String: any Sendable] {
  var reason: String? { (self["not_authenticated_reason"] as? [String: any Sendable])?["reason"] as? String }
}
