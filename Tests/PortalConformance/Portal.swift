// SPDX-License-Identifier: Apache-2.0
import Foundation
import ServerTestSupport

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
    try server.curl("--user", "\(id):\(secret)", server.url + path)
  }

  func send(_ method: String, _ path: String, _ arguments: String...) throws -> Curl.Reply {
    try server.curl(["--user", "\(id):\(secret)", "--request", method] + arguments + [server.url + path])
  }

  /// `POST …/authenticate/user`; a nil value omits the field.
  func start(_ fields: [String: String?] = [:], version: String = "v4") throws -> Curl.Reply {
    var all: [String: String?] = [
      "type": "login", "user_id": "alice", "callback_uri": "http://127.0.0.1:9/none", "message": "Log in?",
    ]
    all.merge(fields) { $1 }
    let form = all.compactMap { name, value in value.map { "\(name)=\($0)" } }.sorted()
    return try server.curl(
      ["--user", "\(id):\(secret)"] + form.flatMap { ["--data-urlencode", $0] } + [
        "\(server.url)/oauth/api/\(version)/authenticate/user"
      ])
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

/// A configuration with these types, after the general settings.
func configuration(_ settings: String = "", types: String = #"[[type]]"# + "\nname = \"login\"\nmethod = \"push\"\n")
  -> String
{
  settings + "\n" + types
}

extension [String: any Sendable] {
  var reason: String? { (self["not_authenticated_reason"] as? [String: any Sendable])?["reason"] as? String }
}
