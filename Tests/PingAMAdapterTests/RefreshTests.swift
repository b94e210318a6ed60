// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Cryptography
import JSONValues
import MobileAuth
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `A new mailbox` {
  private func refresh(_ world: AMWorld) throws -> MailboxRefresh {
    MailboxRefresh(
      client: PingAMClient(courier: world.courier), ingress: world.ingress, registry: world.vault,
      server: try #require(try world.vault.servers().first).id, deviceName: "desk token", timekeeper: world.timekeeper,
      isLocked: { _ in false }, report: { [told = world.told] in told.add($0) })
  }

  private func facts(_ world: AMWorld) throws -> Mechanism.Facts? {
    try world.vault.accounts().first.flatMap { try Mechanism($0) }?.facts
  }

  private func want(_ token: String, _ world: AMWorld) throws {
    let account = try #require(try world.vault.accounts().first)
    try world.vault.put(try PingAM.wanting(mailbox: token, account), nil)
  }

  @Test func `Is registered at AM, and then the only one`() async throws {
    let world = try AMWorld()
    try await world.enrolled()
    try await refresh(world).run()
    #expect(world.requests.withLock { $0.count } == 1, "there was nothing to tell")
    try want("new-mailbox", world)
    let former = try #require(try facts(world)).deviceToken
    #expect(former != "new-mailbox" && !world.told.all.contains(.mailboxMoved(AccountID("ann"))))
    try await refresh(world).run()
    #expect(world.told.all.contains(.mailboxMoved(AccountID("ann"))))
    #expect(
      world.am.profiles.map(\.deviceID) == ["new-mailbox"] && world.am.profiles.map(\.deviceName) == ["desk token"])
    #expect(try facts(world)?.deviceToken == "new-mailbox" && facts(world)?.wantedDeviceToken == nil)
    let request = try #require(world.requests.withLock { $0.last })
    #expect(request.url == "https://am.example:8443/am/json/alpha/push/sns/message?_action=refresh")
    #expect(request.headers["Cookie"] == "amlbcookie=01")
    try world.ingress.accept(try #require(world.am.send("ann")).envelope)
    // The reported channel state is now that of the new mailbox.
    world.ingress.set(channelFault: "no broker", of: former)
    var hints = try world.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .connected)
    world.ingress.set(channelFault: "no broker", of: "new-mailbox")
    #expect(try await hints.next() == .disconnected("messages cannot be delivered: no broker"))
  }

  @Test func `Is registered only when messages can be fetched from it`() async throws {
    let world = try AMWorld()
    try await world.enrolled()
    try want("new", world)
    world.ingress.set(channelFault: "the broker does not let us read it", of: "new")
    let task = Task { [refresh = try refresh(world)] in try await refresh.run() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(world.requests.withLock { $0.count } == 1, "AM heard of nothing but the registration")
    let again = Task { [refresh = try refresh(world)] in try await refresh.run() }
    world.ingress.set(channelFault: nil, of: "new")
    try await again.value
    #expect(try facts(world)?.deviceToken == "new")
  }

  @Test func `Is registered with retries after faults`() async throws {
    let world = try AMWorld()
    try await world.enrolled()
    try want("new", world)
    world.weather.withLock { $0 = [.neverArrives, .answerIsLost, .status(503)] }
    let task = Task { [refresh = try refresh(world)] in try await refresh.run() }
    for seconds in [5, 10, 20] {
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(seconds))
    }
    try await task.value
    #expect(try facts(world)?.deviceToken == "new")
  }

  @Test func `Of a locked account is registered after it was unlocked`() async throws {
    let world = try AMWorld()
    let account = try await world.enrolled(policies: #"{"deviceTampering": {}}"#)
    try want("new", world)
    world.isTamperedWith.withLock { $0 = true }
    let server = try world.server()
    let hints = Task { for try await _ in server.hints() {} }
    func isMoved() -> Bool { world.told.all.contains(.mailboxMoved(account.id)) }
    try await eventually { world.timekeeper.untilNextWakes != nil || isMoved() }
    #expect(world.requests.withLock { $0.count } == 1, "AM heard of nothing but the registration")
    world.isTamperedWith.withLock { $0 = false }
    world.timekeeper.advance(by: .seconds(5))
    try await eventually { isMoved() }
    hints.cancel()
    #expect(try facts(world)?.deviceToken == "new")
  }

  @Test(
    arguments: [
      (TestAM.Version.am800, nil, "enroll again"), (.am802, 400, "no longer knows this mechanism"),
      (.am801, 501, "does not support this request"),
    ] as [(TestAM.Version, Int?, String)])
  func `That AM refuses stays a wish`(version: TestAM.Version, status: Int?, why: String) async throws {
    let world = try AMWorld(version)
    try await world.enrolled()
    try want("new", world)
    if let status { world.weather.withLock { $0 = [.status(status)] } }
    try await refresh(world).run()
    #expect(try facts(world)?.wantedDeviceToken == "new" && facts(world)?.deviceToken != "new")
    #expect(world.told.texts.contains { $0.contains(why) })
  }

  @Test func `Is registered as in the vector`() throws {
    let vector = Vectors.one("refresh", "own-refresh")
    let url = "https://am.example.net:8443/am/json/alpha/push/sns/message?_action=register"
    let facts = Mechanism.Facts(
      uid: "5a0e7c1e-6b1d-4d6c-9a6e-2b8a0f6d1c11", issuer: "i", accountName: "a", registrationURL: url,
      authenticationURL: url, userID: "1f2e3d4c-0000-4000-8000-000000000001", deviceToken: "linux-token-1",
      wantedDeviceToken: "linux-token-2")
    let mechanism = Mechanism(facts: facts, secret: VectorTests.secret)
    let bytes = try #require(mechanism.refresh(deviceName: "desk token"))
    let body = try #require(JSONValue(parsing: bytes))
    for name in ["mechanismUid", "username"] { #expect(body[name] == vector["body"]?[name]) }
    for jwt in [body["jwt"], vector["body"]?["jwt"]] {
      let token = try JWS.Unverified(parsing: try #require(jwt?.text))
      #expect(JSONValue(parsing: try token.payload(authenticatedBy: VectorTests.secret.bytes)) == vector["claims"])
    }
  }
}
