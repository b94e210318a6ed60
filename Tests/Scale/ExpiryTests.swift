// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Requests that expire while all servers look for expired ones.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ExpiryTests {
  /// All requests are begun, and fetched by the device, before the first one expires, also on a busy machine.
  private static let lifetime = Duration.seconds(20)
  private static let configuration = """
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = \(lifetime.components.seconds)
    callback_on_expiry = true
    messages = { en = "Log in?" }
    """

  @Test("Of 60 requests that expire at four servers, also while they are answered, each has one end and one callback")
  func expiry() async throws {
    let sink = try CallbackSink()
    defer { sink.close() }
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 4)
    let portal = try server.addPortal()
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let begin: Curl.Command = (
      [
        "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=alice&device_id=\(device.clientID)",
        "--data", "callback_uri=\(sink.address)/", server.url + "/oauth/api/v4/authenticate/user",
      ], nil
    )
    let start = ContinuousClock.now
    let transactions = try server.curl.race(Array(repeating: begin, count: 60)).map { reply in
      try #require(reply.expect(200).json["transaction_id"] as? String)
    }
    let answered = transactions.prefix(20)
    let answers = try answered.map { transaction -> Curl.Command in
      let path = "/device/v1/requests/\(transaction)/answers"
      let answer = JSON.encode(try device.answer(transaction, .accept))
      return (try device.arguments("POST", path, headers: ["Idempotency-Key: \(Random.uuid())"]), answer)
    }
    // Each takes some time to arrive, and the requests began one after the other.
    try await Task.sleep(until: start + Self.lifetime, clock: .continuous)
    let replies = try server.curl.race(answers)
    let accepted = Set(zip(answered, replies).filter { $1.status == 200 }.map(\.0))
    print("\(accepted.count) of \(answered.count) answers arrived before the request had expired")

    let callbacks = { () -> [String: Int] in
      Dictionary(sink.calls.map { ($0.members["transaction_id"] ?? "", 1) }, uniquingKeysWith: +)
    }
    try await eventually("all callbacks") { callbacks().count >= transactions.count ? () : nil }
    // As long again as a server could take to send one, too.
    try await Task.sleep(for: .seconds(3))
    #expect(callbacks() == Dictionary(uniqueKeysWithValues: transactions.map { ($0, 1) }))
    for transaction in transactions {
      // From each server.
      for _ in 0..<4 {
        let result = try server.result(of: transaction, as: portal)
        #expect(result.isAuthenticated == accepted.contains(transaction))
        #expect(result.reason == (accepted.contains(transaction) ? nil : "expired"))
      }
    }
  }
}
