// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `Answering` {
  private let world: AMWorld

  init() async throws {
    world = try AMWorld()
    try await world.enrolled(pin: pin("13579"))
  }

  @Test(arguments: [false, true]) func `An approval completes the login`(legacy: Bool) async throws {
    let push = try world.bring(legacy: legacy)
    let server = try world.server()
    let verdict = try await server.deliver(try await world.answer(server, .hold))
    #expect(verdict.decision == .accept && verdict.receipt.hasPrefix(push.messageID))
    #expect(world.am.verify(push) == .isTrue)
    // The cookie of this message, not that of the QR code.
    #expect(push.cookie != "amlbcookie=01" && world.requests.withLock { $0.last?.headers["Cookie"] } == push.cookie)
    #expect(world.am.strays == 0)
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test func `Goes to the long path of the realm where the QR code names that`() async throws {
    let world = try AMWorld(namesRealmInFull: true)
    try await world.enrolled()
    let push = try world.bring()
    let server = try world.server()
    _ = try await server.deliver(try await world.answer(server, .hold))
    #expect(world.am.verify(push) == .isTrue)
    let urls = world.requests.withLock { $0.map(\.url) }
    #expect(urls.count == 2 && urls.allSatisfy { $0.contains("/am/json/realms/root/realms/alpha/push/sns/message?") })
  }

  @Test(
    arguments: [Gesture.Kind.doublePress, .veryLongHold, .cancelKeys], [TestAM.PushType.plain, .challenge, .biometric])
  func `A denial rejects the login, of any kind`(gesture: Gesture.Kind, type: TestAM.PushType) async throws {
    let push = try world.bring(type)
    let server = try world.server()
    let verdict = try await server.deliver(try await world.answer(server, gesture))
    #expect(verdict.decision != .accept)
    #expect(world.am.verify(push, type: type) == .isFalse)
  }

  @Test func `With the right number completes the login, with another rejects it, and both are stored`() async throws {
    let server = try world.server()
    for isRight in [true, false] {
      let push = try world.bring(.challenge)
      let request = try await server.open(try #require(try await server.pendingRequests().first))
      guard case .choice(let choice) = request.contents.challenge else {
        Issue.record("no number")
        return
      }
      #expect(choice.slipsAllowed == 3 && choice.digitCount == 2)
      let right = "\(try #require(push.number))"
      let typed = isRight ? right : try #require(choice.options.first { $0 != right })
      _ = try await server.deliver(try await world.answer(server, .enter, choice: typed))
      #expect(world.am.verify(push, type: .challenge) == (isRight ? .isTrue : .isFalse))
    }
  }

  @Test func `With the PIN where AM requires user verification`() async throws {
    let push = try world.bring(.biometric)
    let server = try world.server()
    await #expect(throws: TokenServerFault.pinIncorrect(FailureCounts(max: 3, previous: 1))) {
      try await world.answer(server, .enter, pin: pin("24680"))
    }
    #expect(world.am.verify(push) == .waiting)
    _ = try await server.deliver(try await world.answer(server, .enter, pin: pin("13579")))
    #expect(world.am.verify(push) == .isTrue)
    #expect(try await server.validate().failureCounts == [AccountID("ann"): FailureCounts(max: 3, previous: 1)])
  }

  @Test func `Can only be a denial where AM requires user verification and there is no PIN`() async throws {
    let world = try AMWorld()
    try await world.enrolled()
    try await expectOnlyNo(in: world, at: try world.server(), because: "approval-token pin change")
  }

  @Test func `Can only be a denial where no PIN may replace a fingerprint`() async throws {
    world.takesPIN.withLock { $0 = false }
    try await expectOnlyNo(in: world, at: try world.server(), because: "pin_for_biometric = false")
  }

  @Test func `Can only be a denial where the PIN cannot be typed`() async throws {
    try await expectOnlyNo(in: world, at: try world.server(canType: false), because: "no keypad")
  }

  private func expectOnlyNo(in world: AMWorld, at server: PingAMTokenServer, because why: String) async throws {
    let push = try world.bring(.biometric)
    let request = try await server.open(try #require(try await server.pendingRequests().first))
    #expect(request.contents.challenge == .impossible)
    #expect(request.contents.type.hasPrefix("push with user verification, can only be denied: "))
    #expect(request.contents.type.contains(why))
    for gesture in [Gesture.Kind.hold, .enter] {
      let response = request.answered(
        by: Gesture(gesture, held: .seconds(1)), typing: pin("13579"), after: .seconds(1), idempotencyKey: "key")
      #expect(response == nil)
    }
    let verdict = try await server.deliver(try await world.answer(server, .doublePress))
    #expect(verdict.decision == .deny(.declined))
    #expect(world.am.verify(push, type: .biometric) == .isFalse)
  }

  @Test func `That was given up is not asked for again`() async throws {
    _ = try world.bring()
    let server = try world.server()
    server.ended(try #require(try await server.pendingRequests().first).transaction)
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test func `Is possible with a PIN that was chosen later`() async throws {
    let world = try AMWorld()
    let account = try await world.enrolled()
    try world.vault.put(try PingAM.with(pinLength: 5, account), nil)
    world.judge.hasPIN.withLock { _ = $0.insert(account.id) }
    let push = try #require(world.am.send("ann", .biometric))
    try world.ingress.accept(push.envelope)
    let server = try world.server()
    _ = try await server.deliver(try await world.answer(server, .enter, pin: pin("13579")))
    #expect(world.am.verify(push) == .isTrue)
  }

  // MARK: Locks

  @Test func `Is locked while a policy does not hold, and open again when it does`() async throws {
    let world = try AMWorld()
    try await world.enrolled(policies: #"{"deviceTampering": {"score": 0.5}}"#)
    try world.ingress.accept(try #require(world.am.send("ann")).envelope)
    let server = try world.server()
    let pending = try #require(try await server.pendingRequests().first)
    world.isTamperedWith.withLock { $0 = true }
    await #expect { try await server.open(pending) } throws: { "\($0)".contains("locked") }
    world.isTamperedWith.withLock { $0 = false }
    _ = try await server.open(pending)
  }
}
