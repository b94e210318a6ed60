// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport

@testable import TokenServerStore

/// A server with PINs, a portal, and the refresh token that a wrong PIN would decrypt.
struct PINFixture {
  let server: TokenServerProcess
  let portal: (id: String, secret: String)

  static func configuration(attempts: Int = 3) -> String {
    """
    access_log = true
    [application]
    pin = true
    max_pin_attempts = \(attempts)
    [[type]]
    name = "payment"
    method = "push_with_pin"
    request_expires_in = 600
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    """
  }

  init(attempts: Int = 3) throws {
    server = try TokenServerProcess(configuration: Self.configuration(attempts: attempts))
    portal = try server.addPortal()
  }

  /// A scene with alice's device, enrolled with a PIN.
  static func enrolled(attempts: Int = 3) throws -> (PINFixture, DeviceClient) {
    let ready = try ReadyServer(configuration: configuration(attempts: attempts), withPIN: true)
    return (PINFixture(ready), ready.device)
  }

  init(_ ready: ReadyServer) { (server, portal) = (ready.server, ready.portal) }

  /// - Parameter former: the fixture of a server that has stopped.
  init(after former: PINFixture) throws {
    server = try TokenServerProcess(directory: former.server.directory, port: former.server.port)
    portal = former.portal
  }

  func ask(_ device: DeviceClient, type: String = "payment", user: String = "alice") throws -> String {
    let reply = try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--data", "type=\(type)&user_id=\(user)&device_id=\(device.clientID)",
      "--data", "callback_uri=http://127.0.0.1:9/&message=Pay", server.url + "/oauth/api/v4/authenticate/user")
    return try reply.expect(200).json["transaction_id"] as? String ?? ""
  }

  func result(_ transaction: String) throws -> [String: any Sendable] {
    try server.curl(
      "--user", "\(portal.id):\(portal.secret)", server.url + "/oauth/api/v4/authenticate/transaction/\(transaction)"
    ).expect(200).json
  }

}

extension TokenServerProcess {
  /// Runs SQL in its database, which it may use at the same time.
  /// - Returns: the first column of the rows, one a line.
  @discardableResult
  func query(_ statement: String) throws -> String {
    if let url = TestDeployment.database(of: directory) { return try TestPostgreSQL.query(statement, in: url) }
    let file = try DatabaseFile(directory + "/token-server.db")
    guard statement.hasPrefix("SELECT") else {
      try file.execute(statement)
      return ""
    }
    return try file.values(statement).map { "\($0.text)\n" }.joined()
  }

  /// - Returns: the number of rows.
  func count(_ table: String) throws -> Int {
    let text = try query("SELECT COUNT(*) FROM \(table)")
    return Int(text.trimmingCharacters(in: .newlines)) ?? -1
  }
}

extension SecretBytes {
  /// The bytes that a wrong PIN decrypts to.
  static var wrong: SecretBytes { Random.secret(32) }

  var exposed: [UInt8] { withExposedSecret { Array($0) } }
}

extension Curl.Reply {
  var slug: Problem.Slug? { (try? decoded(Problem.self))?.slug }
  var errorCode: Int? { json["error_code"] as? Int }
}

extension SQLValue {
  fileprivate var text: String {
    switch self {
    case .null: ""
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let text): text
    case .blob(let bytes): "\(bytes.count) bytes"
    }
  }
}
