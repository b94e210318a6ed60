// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Callbacks to portals.
@Suite(.timeLimit(.minutes(5))) struct CallbackTests {
  let sink: CallbackSink
  let portal: Portal
  let device: DeviceClient

  init() throws {
    sink = try CallbackSink()
    let settings = """
      [[callback]]
      url = "\(sink.url)/204/protected"
      username = "token-server"
      password = "a:b"
      """
    portal = try Portal(TokenServerProcess(configuration: configuration(settings)))
    device = try DeviceClient.enrolled(at: portal.server, as: "alice")
  }

  private func finish(callingBack path: String) throws -> String {
    let transaction = try portal.transaction(["device_id": device.clientID, "callback_uri": sink.url + path])
    try device.deny(transaction, .declined).expect(200)
    return transaction
  }

  @Test("Exactly two members") func exactlyTwoMembers() throws {
    let transaction = try finish(callingBack: "/204/plain")
    let call = try #require(sink.calls(to: "/204/plain", count: 1).first)
    let body = try JSONSerialization.jsonObject(with: Data(call.body.utf8)) as? [String: String]
    #expect(body == ["callback_uri": sink.url + "/204/plain", "transaction_id": transaction])
    #expect(call.headers["content-type"] == "application/json;charset=UTF-8")
    #expect(call.headers["authorization"] == nil)
  }

  @Test("Configured credentials") func configuredCredentials() throws {
    _ = try finish(callingBack: "/204/protected")
    let call = try #require(sink.calls(to: "/204/protected", count: 1).first)
    #expect(call.headers["authorization"] == "Basic dG9rZW4tc2VydmVyOmE6Yg==")
  }

  @Test("Tried again until delivered") func triedAgainUntilDelivered() throws {
    let transaction = try finish(callingBack: "/500-then-204/x")
    let calls = try sink.calls(to: "/500-then-204/x", count: 2)
    #expect(calls.count == 2)
    #expect(calls.allSatisfy { $0.body.contains(transaction) })
  }

  @Test("A redirect is not followed but tried again") func aRedirectIsNotFollowedButTriedAgain() throws {
    _ = try finish(callingBack: "/302-then-204/x")
    #expect(try sink.calls(to: "/302-then-204/x", count: 2).count == 2)
    #expect(try sink.calls(to: "/204/redirected", count: 0).isEmpty)
  }

  @Test("A portal that does not answer delays no other") func portalThatDoesNotAnswerDelaysNoOther() throws {
    let dead = try portal.transaction(["device_id": device.clientID, "callback_uri": "http://127.0.0.1:9/dead"])
    try device.deny(dead, .declined).expect(200)
    _ = try finish(callingBack: "/204/alive")
    #expect(try sink.calls(to: "/204/alive", count: 1).count == 1)
  }

  @Test("A callback survives kill minus nine") func aCallbackSurvivesKillMinusNine() throws {
    let path = "/500-then-500-then-500-then-204/restart"
    let transaction = try finish(callingBack: path)
    let before = try sink.calls(to: path, count: 1).count
    _ = portal.server.stop(killing: true)
    let again = try TokenServerProcess(directory: portal.server.directory)
    let calls = try sink.calls(to: path, count: before + 1)
    #expect(calls.count > before && calls.last?.body.contains(transaction) == true)
    _ = again
  }
}
