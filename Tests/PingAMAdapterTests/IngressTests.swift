// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import JSONValues
import MobileAuth
import Secrets
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `A push message that is brought` {
  private let world: AMWorld
  private let ann = AccountID("ann")

  init() async throws {
    world = try AMWorld()
    try await world.enrolled()
  }

  private func push(_ type: TestAM.PushType = .plain) throws -> TestAM.Push { try #require(world.am.send("ann", type)) }

  private func envelope(_ message: String, id: String = "AUTHENTICATE:1") -> [UInt8] {
    Array(JSONValue.object(["messageId": .text(id), "message": .text(message)]).canonical.utf8)
  }

  /// A message with any contents, signed by ann's AM.
  private func signed(_ claims: [String: JSONValue]) throws -> String {
    let record = try #require(try world.vault.accounts().first)
    let mechanism = try #require(try Mechanism(record))
    var all: [String: JSONValue] = [
      "u": .text(mechanism.facts.uid), "c": .text([UInt8](repeating: 1, count: 32).base64), "t": .text("60"),
    ]
    for (name, value) in claims { all[name] = value }
    return mechanism.secret.token(all.filter { $0.value != .null })
  }

  @Test func `Is there after a restart, in whichever form it came`() async throws {
    #expect(try world.ingress.accept(try push().envelope) == .kept(ann))
    world.timekeeper.advance(by: .seconds(1))
    #expect(try world.ingress.accept(world.am.amazonForm(of: try push(.challenge))) == .kept(ann))
    let requests = try await world.server().pendingRequests()
    #expect(requests.map(\.userInfo["type"]) == ["push with a number", "push"])
    #expect(requests[0].message == "Login attempt from ann at Example")
    #expect(requests[0].userInfo["context"]?.contains("198.51.100.7") == true)
    #expect(requests[0].userInfo["payload"] == "{  }" && requests[0].sentAtMilliseconds == 1_795_253_340_000)
  }

  @Test func `Twice, or under another id, is shown to the user once`() async throws {
    let push = try push()
    #expect(try world.ingress.accept(push.envelope) == .kept(ann))
    #expect(try world.ingress.accept(push.envelope) == .known(ann))
    #expect(try world.ingress.accept(envelope(push.message, id: "AUTHENTICATE:other")) == .known(ann))
    // Another message with an ID that is already stored.
    #expect(try world.ingress.accept(envelope(try self.push().message, id: push.messageID)) == .known(ann))
    #expect(try await world.server().pendingRequests().count == 1)
  }

  @Test func `After it was answered, is known`() async throws {
    let push = try push()
    try world.ingress.accept(push.envelope)
    let server = try world.server()
    _ = try await server.deliver(try await world.answer(server, .hold))
    #expect(try world.ingress.accept(push.envelope) == .known(ann))
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test func `For an unknown account, or not authentic, is dropped and counted`() async throws {
    let push = try push()
    let other = SharedSecret(bytes: SecretBytes(copying: [UInt8](repeating: 9, count: 32)))
    let uid = try #require(world.am.profiles.first?.mechanismUID)
    let cases: [([UInt8], PushIngress.Refusal)] = [
      (envelope(Vectors.one("push-messages", "own-push-default")["message"]!.text!), .unknownMechanism),
      (envelope(Vectors.one("refused-messages", "own-push-unknown")["message"]!.text!), .unknownMechanism),
      (envelope(push.message.dropLast() + (push.message.last == "A" ? "B" : "A")), .forged("")),
      (envelope(other.token(["u": .text(uid)])), .forged("")),
      (envelope("a.b"), .forged("")),
      (envelope(Vectors.one("refused-messages", "own-push-none")["message"]!.text!), .forged("")),
      (envelope(try signed(["u": .null])), .forged("")), (Array("{}".utf8), .malformed("no messageId")),
      ([UInt8](repeating: 0x20, count: 16_385), .tooLarge),
    ]
    for (bytes, refusal) in cases {
      #expect(
        performing: { try world.ingress.accept(bytes) },
        throws: { error in
          if case PushIngress.Refusal.forged = error, case .forged = refusal { return true }
          return error as? PushIngress.Refusal == refusal
        })
    }
    #expect(world.told.texts.filter { $0.hasPrefix("dropped: ") }.count == cases.count)
    #expect(try await world.server().pendingRequests().isEmpty)
    #expect(try world.ingress.accept(push.envelope) == .kept(ann))
  }

  @Test(
    arguments: [
      (["c": .null], "no c"), (["c": .text("!")], "c"), (["c": .text("")], "c"), (["t": .text("soon")], "t"),
      (["t": .text("0")], "t"), (["t": .text("86401")], "t"), (["t": .text("-1")], "t"), (["i": .text("now")], "i"),
      (["i": .text("-1")], "i"), (["l": .text("YQ0K")], "l"), (["l": .text("*")], "l"),
      (["k": .text("challenge")], "n"), (["k": .text("challenge"), "n": .text("17,x,86")], "n"),
      (["k": .text("Challenge"), "n": .text("17,17")], "n"), (["k": .text("challenge"), "n": .text("17")], "n"),
      (["k": .text("challenge"), "n": .text("17,42,")], "n"), (["k": .text("challenge"), "n": .text("5,42")], "n"),
      (["k": .text("challenge"), "n": .text("-1,42")], "n"),
    ] as [([String: JSONValue], String)])
  func `That is signed but makes no sense is refused`(claims: [String: JSONValue], what: String) throws {
    let flaw = what == "no c" ? "it has no c" : "its \(what) is malformed"
    #expect(throws: PushIngress.Refusal.notHandleable(flaw)) { try world.ingress.accept(envelope(try signed(claims))) }
  }

  @Test(
    arguments: [
      ([:], PushMessage.Kind.confirmation, 60), (["t": .null], .confirmation, 120),
      (["t": .integer(5)], .confirmation, 5),
      (["t": .text("86400")], .confirmation, 86_400), (["k": .text("BIOMETRIC")], .biometric, 60),
      (["k": .text("default")], .confirmation, 60), (["k": .text("palm")], .confirmation, 60),
      (["k": .text("challenge"), "n": .text("10,99")], .number([10, 99]), 60),
      (["n": .text("10,99")], .confirmation, 60), (["l": .text("YT1i")], .confirmation, 60),
    ] as [([String: JSONValue], PushMessage.Kind, Int64)])
  func `Has defaults for what is missing`(claims: [String: JSONValue], kind: PushMessage.Kind, life: Int64) throws {
    let record = try #require(try world.vault.accounts().first)
    let mechanism = try #require(try Mechanism(record))
    let message = try PushMessage(try PushMessage.token(try signed(claims)), verifiedWith: mechanism.secret)
    #expect(message.kind == kind && message.timeToLive == life)
    #expect(message.unknownKind == (claims["k"] == .text("palm") ? "palm" : nil))
  }

  @Test func `Names the user where the registration did not, and never another`() async throws {
    let world = try AMWorld(.am800)
    try await world.enrolled()
    func named() throws -> String? {
      try world.vault.accounts().first.flatMap { try Mechanism($0) }?.facts.userID
    }
    #expect(try named() == nil)
    let record = try #require(try world.vault.accounts().first)
    let mechanism = try #require(try Mechanism(record))
    for (number, name) in ["d1", "d2"].enumerated() {
      let claims: [String: JSONValue] = [
        "u": .text(mechanism.facts.uid), "c": .text([UInt8(number)].base64), "d": .text(name),
      ]
      try world.ingress.accept(envelope(mechanism.secret.token(claims), id: "AUTHENTICATE:\(number)"))
      #expect(try named() == "d1")
      // Only the changed user name is reported.
      #expect(world.told.texts.filter { $0.contains("names the user") }.count == number)
    }
    #expect(world.told.texts.contains { $0.contains("a push message names the user d2") })
  }

  /// A board without a clock chip, and boards with a wrong clock.
  @Test(arguments: [0, 1_795_253_339_000 + 3_600_000, 1_795_253_339_000 - 3_600_000])
  func `Is valid for its lifetime from its arrival, independent of the board's clock`(clock: Int64) async throws {
    let world = try AMWorld(wallClockMilliseconds: clock)
    try await world.enrolled()
    try world.ingress.accept(try #require(world.am.send("ann", timeout: 100)).envelope)
    #expect(world.told.texts.contains { $0.contains("min apart") })
    let server = try world.server()
    #expect(try await server.pendingRequests().map(\.deadline) == [world.timekeeper.now + .seconds(100)])
    world.timekeeper.advance(by: .seconds(99))
    #expect(try await server.pendingRequests().count == 1)
    world.timekeeper.advance(by: .seconds(1))
    #expect(try await server.pendingRequests().isEmpty)
    #expect(try world.vault.pendingMessages().isEmpty)
  }

  @Test func `Is no longer good after a restart than before`() async throws {
    try world.ingress.accept(try #require(world.am.send("ann", timeout: 100)).envelope)
    world.timekeeper.advance(by: .seconds(60))
    #expect(try await world.server().pendingRequests().map(\.deadline) == [world.timekeeper.now + .seconds(40)])
    world.timekeeper.advance(by: .seconds(40))
    #expect(try await world.server().pendingRequests().isEmpty)
  }

  @Test func `Gives way when very many come`() async throws {
    for number in 0..<ShelfLimits.perAccount + 3 {
      let claims: [String: JSONValue] = ["c": .text([UInt8(number)].base64)]
      #expect(try world.ingress.accept(envelope(try signed(claims), id: "AUTHENTICATE:\(number)")) == .kept(ann))
    }
    let kept = try world.vault.pendingMessages()
    #expect(kept.map(\.reference) == (3..<ShelfLimits.perAccount + 3).map { "AUTHENTICATE:\($0)" })
  }

  @Test func `Is delivered again only where it could not be stored`() async throws {
    #expect(world.ingress.settles(try push().envelope))
    #expect(world.ingress.settles(Array("{}".utf8)))
    let broken = PushIngress(registry: world.vault, shelf: FullShelf(), timekeeper: world.timekeeper) { _ in }
    #expect(!broken.settles(try push().envelope))
    let another = try push().envelope
    #expect(throws: PushIngress.Refusal.notKept(.storage("disk full"))) { try broken.accept(another) }
  }

  private func mailbox() throws -> String {
    let account = try #require(try world.vault.accounts().first)
    return try #require(try PingAM.mailbox(of: account))
  }

  @Test func `Is missed when the channel is down, and that is said`() async throws {
    let mailbox = try mailbox()
    var hints = try world.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .connected)
    world.ingress.set(channelFault: "no broker", of: "another's mailbox")
    #expect(try await hints.next() == .pendingChanged)
    world.ingress.set(channelFault: "no broker", of: mailbox)
    #expect(try await hints.next() == .disconnected("messages cannot be delivered: no broker"))
    // Messages still arrive through the control socket.
    try world.ingress.accept(try push().envelope)
    #expect(try await hints.next() == .pendingChanged)
    world.ingress.set(channelFault: nil, of: mailbox)
    #expect(try await hints.next() == .connected)
  }

  @Test func `That is stored is found although the channel is down from the start`() async throws {
    let mailbox = try mailbox()
    world.ingress.set(channelFault: "no broker", of: mailbox)
    var hints = try world.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .pendingChanged)
    world.ingress.set(channelFault: nil, of: mailbox)
    #expect(try await hints.next() == .connected)
  }

  @Test func `Wakes waiting tasks`() async throws {
    var hints = try world.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .connected)
    try world.ingress.accept(try push().envelope)
    #expect(try await hints.next() == .pendingChanged)
  }
}

/// A message store without free space.
private struct FullShelf: MessageShelf {
  func keep(_ message: DeliveredMessage) throws(CustodyFault) -> Bool { throw .storage("disk full") }
  func message(_ transaction: TransactionID) -> DeliveredMessage? { nil }
  func pendingMessages() -> [DeliveredMessage] { [] }
  func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?) {}
}
