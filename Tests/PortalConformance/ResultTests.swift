// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Every row of the result table: the event on the token, the result for the portal, and whether there is a callback.
@Suite(.timeLimit(.minutes(5))) struct ResultTests {
  let sink: CallbackSink
  let portal: Portal
  let device: DeviceClient

  static let types = """
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    [[type]]
    name = "brief"
    method = "push"
    request_expires_in = 1
    [[type]]
    name = "brief-and-told"
    method = "push"
    request_expires_in = 1
    callback_on_expiry = true
    [[type]]
    name = "delivered"
    method = "push"
    request_expires_in = 600
    delivery_required = true
    [[type]]
    name = "newest"
    method = "push"
    request_expires_in = 600
    supersede = true
    """

  init() throws {
    sink = try CallbackSink()
    portal = try Portal(TokenServerProcess(configuration: configuration(types: Self.types)))
    device = try DeviceClient.enrolled(at: portal.server, as: "alice")
  }

  private func start(_ type: String = "login") throws -> String {
    try portal.transaction(
      ["device_id": device.clientID, "type": type, "callback_uri": sink.url + "/204/\(type)"])
  }

  private func isCalledBack(_ type: String = "login", about transaction: String) throws -> Bool {
    try sink.calls(to: "/204/\(type)", count: 1).contains { $0.body.contains(transaction) }
  }

  /// Whether no callback exists for the transaction: the next callback that is started is the first to arrive.
  private func isNotCalledBack(_ type: String = "login", about transaction: String) throws -> Bool {
    let other = try start()
    try device.deny(other, .declined).expect(200)
    return try isCalledBack(about: other)
      && !sink.calls(to: "/204/\(type)", count: 0).contains { $0.body.contains(transaction) }
  }

  @Test("Before the end") func beforeTheEnd() throws {
    let transaction = try start()
    let result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == false)
    #expect(result["not_authenticated_reason"] == nil)
    #expect(result["authentication_method"] == nil)
    #expect(result["user_id"] as? String == "alice")
    #expect(result["callback_uri"] as? String == sink.url + "/204/login")
    #expect(result["transaction_id"] as? String == transaction)
    #expect(abs((result["timestamp"] as? Double ?? 0) / 1000 - Date().timeIntervalSince1970) < 60)
  }

  @Test("Accepted") func accepted() throws {
    let transaction = try start()
    try device.send(device.answer(transaction, .accept), to: transaction).expect(200)
    #expect(try isCalledBack(about: transaction))
    let result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == true)
    #expect(result["authentication_method"] as? String == "push")
    #expect(result["not_authenticated_reason"] == nil)
  }

  @Test("Denied", arguments: [DenialReason.declined, .canceled, .notMe])
  func denied(reason: DenialReason) throws {
    let transaction = try start()
    try device.deny(transaction, reason).expect(200)
    #expect(try isCalledBack(about: transaction))
    let result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == false)
    #expect(result.reason == "not_accepted")
    #expect(result["authentication_method"] as? String == "push")
  }

  @Test("Denied in a sealed answer") func deniedInASealedAnswer() throws {
    let transaction = try start()
    try device.send(device.answer(transaction, .deny), to: transaction).expect(200)
    #expect(try isCalledBack(about: transaction))
    #expect(try portal.result(transaction).reason == "not_accepted")
  }

  @Test("Bad answers close it only together") func badAnswersCloseItOnlyTogether() throws {
    let transaction = try start()
    for _ in 1...4 {
      let reply = try device.send(SealedAnswer(answer: "bm90IE9wZW5QR1A="), to: transaction)
      #expect(reply.status == 422)
      #expect(try reply.decoded(Problem.self).slug == .answerInvalid)
    }
    #expect(try portal.result(transaction).reason == nil)
    #expect(try device.pending().count == 1)
    try device.send(SealedAnswer(answer: "bm90IE9wZW5QR1A="), to: transaction).expect(422)
    #expect(try isCalledBack(about: transaction))
    #expect(try portal.result(transaction).reason == "invalid_answer")
    #expect(try device.pending().isEmpty)
  }

  @Test("Enrollment removed meanwhile", arguments: ["disableMobileAuthentication", "disablePushAuthentication", nil])
  func enrollmentRemovedMeanwhile(operation: String?) throws {
    let transaction = try start()
    let path = "/oauth/api/v4/users/alice/devices/\(device.clientID)"
    if let operation {
      #expect(try portal.send("POST", "\(path)/\(operation)").status == 204)
    } else {
      #expect(try portal.send("DELETE", path).status == 204)
    }
    #expect(try isCalledBack(about: transaction))
    let result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == false)
    #expect(result.reason == "invalid_request")
    #expect(result["authentication_method"] == nil)
  }

  @Test("Not delivered") func notDelivered() throws {
    let transaction = try start("delivered")
    #expect(try isCalledBack("delivered", about: transaction))
    #expect(try portal.result(transaction).reason == "failed_to_send")
  }

  @Test("Expired") func expired() throws {
    var page = try device.events(after: nil)
    let transaction = try start("brief")
    let wanted = [
      DeviceEvent(.request, transactionID: transaction, profileID: "PROF01"),
      DeviceEvent(.requestClosed, transactionID: transaction, profileID: "PROF01", reason: .expired),
    ]
    // On a busy machine both are in one page, or a page comes late.
    var events: [DeviceEvent] = []
    for _ in 1...6 where events.count < wanted.count {
      guard let next = try device.events(after: page?.cursor) else { continue }
      page = next
      events += next.events
    }
    // Another server does not know the cursor, and tells the device to read the list.
    let resync = DeviceEvent(.resync)
    let isToldToRead = TestDeployment.hasSeveralServers && events.contains(resync)
    let areExpected = events.allSatisfy { wanted.contains($0) || $0 == resync }
    #expect(isToldToRead ? areExpected : events == wanted, "\(events)")
    let result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == false)
    #expect(result.reason == nil)
    #expect(try isNotCalledBack("brief", about: transaction))
  }

  @Test("Expired and the portal wants to know") func expiredAndThePortalWantsToKnow() throws {
    let transaction = try start("brief-and-told")
    #expect(try isCalledBack("brief-and-told", about: transaction))
    #expect(try portal.result(transaction).reason == "expired")
    let late = try device.deny(transaction, .declined)
    #expect(late.status == 410)
    #expect(try late.decoded(Problem.self).slug == .expired)
  }

  @Test("Replaced by a newer one") func replacedByANewerOne() throws {
    let older = try start("newest")
    let newer = try start("newest")
    #expect(try device.pending().map(\.transactionID) == [newer])
    #expect(try portal.result(older)["is_authenticated"] as? Bool == false)
    #expect(try portal.result(older).reason == nil)
    let late = try device.deny(older, .declined)
    #expect(late.status == 409)
    #expect(try late.decoded(Problem.self).state == .superseded)
    #expect(try isNotCalledBack("newest", about: older))
  }

  @Test("Withdrawn by the portal") func withdrawnByThePortal() throws {
    let transaction = try start()
    let path = "/oauth/api/v4/authenticate/transaction/\(transaction)"
    #expect(try portal.send("DELETE", path).status == 204)
    #expect(try portal.send("DELETE", path).status == 204)
    #expect(try portal.result(transaction).reason == nil)
    let late = try device.deny(transaction, .declined)
    #expect(late.status == 409)
    #expect(try late.decoded(Problem.self).state == .canceled)
    #expect(try isNotCalledBack(about: transaction))
  }

  @Test("Unknown") func unknown() throws {
    for method in ["GET", "DELETE"] {
      let path = "/oauth/api/v4/authenticate/transaction/7e9b1f5c-0000-4000-8000-000000000000"
      let reply = try portal.send(method, path)
      #expect(reply.status == 404)
      #expect(reply.json["error_code"] as? Int == 3004)
    }
  }
}
