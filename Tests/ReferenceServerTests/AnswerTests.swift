// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import ServerTestSupport
import Testing

/// The pending list, fetches and answers, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AnswerTests {
  let server: TokenServerProcess
  let device: DeviceClient
  let portal: (id: String, secret: String)

  init() throws {
    let ready = try ReadyServer()
    (server, device, portal) = (ready.server, ready.device, ready.portal)
  }

  private func ask() throws -> String {
    let reply = try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=alice&device_id=\(device.clientID)",
      "--data", "callback_uri=http://127.0.0.1:9/&secure_message=Really", server.url + "/oauth/api/v4/authenticate/user"
    )
    return try reply.expect(200).json["transaction_id"] as? String ?? ""
  }

  @Test("The list and its tag") func theListAndItsTag() throws {
    let empty = try device.call("GET", "/device/v1/pending").expect(200)
    let ids = [try ask(), try ask()]
    let reply = try device.call("GET", "/device/v1/pending").expect(200)
    #expect(Set(try reply.decoded(PendingList.self).requests.map(\.transactionID)) == Set(ids))
    let tag = try #require(reply.headers["etag"])
    #expect(tag != empty.headers["etag"])
    #expect(try device.call("GET", "/device/v1/pending", headers: ["If-None-Match: \(tag)"]).status == 304)
    #expect(try device.call("GET", "/device/v1/pending?profile_id=OTHER1").decoded(PendingList.self).requests.isEmpty)
    try device.deny(ids[0], .declined).expect(200)
    #expect(try device.call("GET", "/device/v1/pending", headers: ["If-None-Match: \(tag)"]).status == 200)
  }

  @Test("The list has the newest request's message if the device asks for it") func listWithMessage() throws {
    #expect(try device.call("GET", "/device/v1/pending?include=message").decoded(PendingList.self).requests.isEmpty)
    for _ in 0..<2 { _ = try ask() }
    let list = try device.call("GET", "/device/v1/pending?include=message").expect(200).decoded(PendingList.self)
    #expect(list.requests.map { $0.sealedMessage != nil } == [true, false])
    let message = try #require(bytes(base64: list.requests[0].sealedMessage ?? ""))
    let opened = try device.openPGP.open(message, from: #require(device.serverCertificate))
    #expect(opened == (try device.fetch(list.requests[0].transactionID)).bytes)
    for query in ["", "?include=", "?include=Message", "?included=message"] {
      #expect(
        try device.call("GET", "/device/v1/pending" + query).decoded(PendingList.self).requests.allSatisfy {
          $0.sealedMessage == nil
        })
    }
  }

  @Test("Every fetch gives the same bytes") func everyFetchGivesTheSameBytes() throws {
    let transaction = try ask()
    let (first, second) = (try device.fetch(transaction), try device.fetch(transaction))
    #expect(first.bytes == second.bytes)
    #expect(first.request.message == "Really" && first.request.pushMessage == "Do you want to log in?")
    #expect(first.request.iss == server.url && first.request.clientID == device.clientID)
    #expect(first.request.expiresInMs == 60_000)
  }

  /// Fails if the device is notified of its own answer: it would read the list again.
  @Test("A device gets no event for its own answer")
  func eventsOfAnswers() throws {
    let transactions = [try ask(), try ask()]
    let cursor = try device.events(after: nil)?.cursor
    try device.send(device.answer(transactions[0], .accept), to: transactions[0]).expect(200)
    try device.deny(transactions[1], .declined).expect(200)
    #expect(try device.events(after: cursor, wait: 0) == nil)
  }

  @Test("A repeated answer gets the same receipt") func aRepeatedAnswerGetsTheSameReceipt() throws {
    let transaction = try ask()
    let answer = try device.answer(transaction, .accept)
    let key = Random.uuid()
    let first = try device.send(answer, to: transaction, key: key).expect(200).decoded(RequestStatus.self)
    #expect(first.state == .authenticated && first.receipt != nil && first.idempotencyKey == key)
    #expect(try device.send(answer, to: transaction, key: key).expect(200).decoded(RequestStatus.self) == first)
    let status = try device.call("GET", "/device/v1/requests/\(transaction)").decoded(RequestStatus.self)
    #expect(status == first)
    // Another body with the same key, or another key for the same request, is neither a new answer nor a repetition.
    let other = SealedAnswer(answer: "AAAA")
    #expect(try device.send(other, to: transaction, key: key).decoded(Problem.self).slug == .idempotencyConflict)
    let late = try device.send(answer, to: transaction).expect(409).decoded(Problem.self)
    #expect(late.slug == .alreadyHandled && late.state == .authenticated)
    #expect(
      try device.call("GET", "/device/v1/requests/\(transaction)/message").decoded(Problem.self).slug
        == .alreadyHandled)
  }

  @Test("An answer needs a key", arguments: ["", "x", "123"])
  func anAnswerNeedsAKey(key: String) throws {
    #expect(try device.deny(try ask(), .declined, key: key).decoded(Problem.self).slug == .invalidRequest)
  }

  @Test("An answer by another key is no answer") func anAnswerByAnotherKeyIsNoAnswer() throws {
    let transaction = try ask()
    let stranger = try OpenPGPKey.generate(userID: "stranger")
    let (bytes, _) = try device.fetch(transaction)
    let forged = SealedAnswer(answer: try stranger.seal(bytes, to: device.serverCertificate!).base64)
    #expect(try device.send(forged, to: transaction).expect(422).decoded(Problem.self).slug == .answerInvalid)
    let other = try device.answer(transaction, .accept) { $0.nonce = "another" }
    #expect(try device.send(other, to: transaction).expect(422).decoded(Problem.self).slug == .answerInvalid)
    try device.send(device.answer(transaction, .accept), to: transaction).expect(200)
  }

  @Test("A request of another device is unknown") func aRequestOfAnotherDeviceIsUnknown() throws {
    let transaction = try ask()
    let other = try DeviceClient.enrolled(at: server, as: "bob")
    for path in ["", "/message"] {
      #expect(
        try other.call("GET", "/device/v1/requests/\(transaction)\(path)").decoded(Problem.self).slug == .notFound)
    }
    #expect(try other.deny(transaction, .declined).decoded(Problem.self).slug == .notFound)
  }

  @Test("A restart in between changes nothing") func aRestartInBetweenChangesNothing() throws {
    let transaction = try ask()
    let answer = try device.answer(transaction, .accept)
    let key = Random.uuid()
    try device.send(answer, to: transaction, key: key).expect(200)
    let port = server.port
    _ = server.stop(killing: true)
    let again = try TokenServerProcess(directory: server.directory, port: port)
    #expect(
      try device.send(answer, to: transaction, key: key).expect(200).decoded(RequestStatus.self).state == .authenticated
    )
    _ = again
  }
}
