// SPDX-License-Identifier: Apache-2.0
import CBench
import Cryptography
import Foundation
import ReferenceProtocol

/// The token server under load, with the state that its clients share.
final class Site {
  let loop = Loop()
  let issuer: String
  let port: UInt16
  let tls: OpaquePointer
  /// A shared buffer for the current read.
  let scratch = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 16_384)
  /// The server's last DPoP nonce: it is the same for all clients.
  var nonce: String?
  /// Errors by kind, with their number. A run with errors is invalid.
  private(set) var failures: [String: Int] = [:]
  var hasFailed: Bool { !failures.isEmpty }
  private let portalCredentials: String

  init(_ server: TokenServer) {
    issuer = server.issuer
    port = server.port
    guard let tls = bench_tls_context(server.authority) else { fatalError("cannot read \(server.authority)") }
    self.tls = tls
    portalCredentials = Array("portal:\(server.portalSecret)".utf8).base64
  }

  deinit {
    SSL_CTX_free(tls)
    scratch.deallocate()
  }

  func fail(_ why: String) { failures[why, default: 0] += 1 }

  func requireNoFailures() throws {
    guard failures.isEmpty else {
      throw BenchError(failures.map { "\($0.key) (\($0.value) times)" }.joined(separator: "; "))
    }
  }

  /// The response's body; nil, recorded as an error, if the status is not a success.
  func body(of response: Response, _ what: String) -> [UInt8]? {
    if (200..<300).contains(response.status) { return response.body }
    fail("\(what): \(response.status) \(String(decoding: response.body.prefix(200), as: UTF8.self))")
    return nil
  }

  func decode<Value: Decodable>(_ type: Value.Type, _ response: Response, _ what: String) -> Value? {
    guard let body = body(of: response, what) else { return nil }
    do { return try JSON.decode(type, from: body) } catch {
      fail("\(what): \(error)")
      return nil
    }
  }

  func request(_ method: String, _ path: String, _ fields: [(String, String)], _ body: [UInt8] = []) -> [UInt8] {
    var text = "\(method) \(path) HTTP/1.1\r\nHost: \(Loopback.address):\(port)\r\n"
    for (name, value) in fields { text += "\(name): \(value)\r\n" }
    if method != "GET" { text += "Content-Length: \(body.count)\r\n" }
    return Array("\(text)\r\n".utf8) + body
  }

  /// A portal's request to one device.
  func ask(_ user: String, on clientID: String, type: String = "login", callback: String) -> [UInt8] {
    request(
      "POST", "/oauth/api/v4/authenticate/user",
      [("Authorization", "Basic \(portalCredentials)"), ("Content-Type", "application/x-www-form-urlencoded")],
      Array("type=\(type)&user_id=\(user)&device_id=\(clientID)&message=Log+in%3F&callback_uri=\(callback)".utf8))
  }

  struct Asked: Decodable {
    var transactionID: String

    enum CodingKeys: String, CodingKey { case transactionID = "transaction_id" }
  }

  /// The transaction that a portal's request started.
  func transaction(in response: Response) -> String? { decode(Asked.self, response, "ask")?.transactionID }
}
