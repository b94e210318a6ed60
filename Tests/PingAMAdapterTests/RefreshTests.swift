// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import JSONValues
import MobileAuth
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("A new mailbox", .timeLimit(.minutes(5))) struct RefreshTests {
  private func refresh(_ fixture: PingAMFixture) throws -> MailboxRefresh {
    MailboxRefresh(
      client: PingAMHTTPClient(http: fixture.http), ingress: fixture.ingress, registry: fixture.vault,
      server: try #require(try fixture.vault.servers().first).id, deviceName: "desk token",
      environment: fixture.environment, isLocked: { _ in false })
  }

  private func metadata(_ fixture: PingAMFixture) throws -> Mechanism.Metadata? {
    try fixture.vault.accounts().first.flatMap { try Mechanism($0) }?.metadata
  }

  private func want(_ token: String, _ fixture: PingAMFixture) throws {
    let account = try #require(try fixture.vault.accounts().first)
    try fixture.vault.put(try account.requesting(mailbox: token), nil)
  }

  @Test("Is registered at AM, and then the only one") func isRegisteredAtAMAndThenTheOnlyOne() async throws {
    let fixture = try PingAMFixture()
    try await fixture.enrolled()
    try await refresh(fixture).run()
    #expect(fixture.requests.withLock { $0.count } == 1, "there was nothing to tell")
    try want("new-mailbox", fixture)
    let former = try #require(try metadata(fixture)).deviceToken
    #expect(former != "new-mailbox" && !fixture.events.all.contains(.mailboxMoved(AccountID("ann"))))
    try await refresh(fixture).run()
    #expect(fixture.events.all.contains(.mailboxMoved(AccountID("ann"))))
    #expect(
      fixture.am.profiles.map(\.deviceID) == ["new-mailbox"] && fixture.am.profiles.map(\.deviceName) == ["desk token"])
    #expect(try metadata(fixture)?.deviceToken == "new-mailbox" && metadata(fixture)?.wantedDeviceToken == nil)
    let request = try #require(fixture.requests.withLock { $0.last })
    #expect(request.url == "https://am.example:8443/am/json/alpha/push/sns/message?_action=refresh")
    #expect(request.headers["Cookie"] == "amlbcookie=01")
    try fixture.ingress.accept(try #require(fixture.am.send("ann")).envelope)
    // The reported channel state is now that of the new mailbox.
    fixture.ingress.set(channelFault: "no broker", of: former)
    var hints = try fixture.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .connected)
    fixture.ingress.set(channelFault: "no broker", of: "new-mailbox")
    #expect(try await hints.next() == .disconnected("messages cannot be delivered: no broker"))
  }

  @Test("Is registered only when messages can be fetched from it") func isRegisteredOnlyWhenMessagesCanBeFetchedFromIt()
    async throws
  {
    let fixture = try PingAMFixture()
    try await fixture.enrolled()
    try want("new", fixture)
    fixture.ingress.set(channelFault: "the broker does not let us read it", of: "new")
    let task = Task { [refresh = try refresh(fixture)] in try await refresh.run() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.finished() }
    #expect(fixture.requests.withLock { $0.count } == 1, "AM heard of nothing but the registration")
    let again = Task { [refresh = try refresh(fixture)] in try await refresh.run() }
    fixture.ingress.set(channelFault: nil, of: "new")
    try await again.finished()
    #expect(try metadata(fixture)?.deviceToken == "new")
  }

  @Test("Is registered with retries after faults") func isRegisteredWithRetriesAfterFaults() async throws {
    let fixture = try PingAMFixture()
    try await fixture.enrolled()
    try want("new", fixture)
    fixture.weather.withLock { $0 = [.neverArrives, .answerIsLost, .status(503)] }
    let task = Task { [refresh = try refresh(fixture)] in try await refresh.run() }
    for seconds in [5, 10, 20] {
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(seconds))
    }
    try await task.finished()
    #expect(try metadata(fixture)?.deviceToken == "new")
  }

  /// Fails if the answer of a gateway counts as AM's.
  @Test("Is registered after a gateway refused it", arguments: [401, 403, 404])
  func isRegisteredAfterAGatewayRefusedIt(status: Int) async throws {
    let fixture = try PingAMFixture()
    try await fixture.enrolled()
    try want("new", fixture)
    fixture.weather.withLock { $0 = [.status(status)] }
    let task = Task { [refresh = try refresh(fixture)] in try await refresh.run() }
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: .seconds(5))
    try await task.finished()
    #expect(try metadata(fixture)?.deviceToken == "new")
  }

  @Test("Of a locked account is registered after it was unlocked") func ofALockedAccountIsRegisteredAfterItWasUnlocked()
    async throws
  {
    let fixture = try PingAMFixture()
    let account = try await fixture.enrolled(policies: #"{"deviceTampering": {}}"#)
    try want("new", fixture)
    fixture.isTamperedWith.withLock { $0 = true }
    let server = try fixture.server()
    let hints = Task { for try await _ in server.hints() {} }
    func isMoved() -> Bool { fixture.events.all.contains(.mailboxMoved(account.id)) }
    try await eventually("a pause, or the mailbox is moved") { fixture.clock.untilNextWakes != nil || isMoved() }
    #expect(fixture.requests.withLock { $0.count } == 1, "AM heard of nothing but the registration")
    fixture.isTamperedWith.withLock { $0 = false }
    fixture.clock.advance(by: .seconds(5))
    try await eventually("the mailbox is moved") { isMoved() }
    hints.cancel()
    #expect(try metadata(fixture)?.deviceToken == "new")
  }

  @Test(
    "That AM refuses stays a wish",
    arguments: [
      (TestAM.Version.am800, nil, "enroll again"), (.am802, 400, "no longer knows this mechanism"),
      (.am801, 501, "does not support this request"),
    ] as [(TestAM.Version, Int?, String)])
  func thatAMRefusesStaysAWish(version: TestAM.Version, status: Int?, why: String) async throws {
    let fixture = try PingAMFixture(version)
    try await fixture.enrolled()
    try want("new", fixture)
    if let status { fixture.weather.withLock { $0 = [.status(status)] } }
    try await refresh(fixture).run()
    #expect(try metadata(fixture)?.wantedDeviceToken == "new" && metadata(fixture)?.deviceToken != "new")
    #expect(fixture.events.texts.contains { $0.contains(why) })
  }

  @Test("Is registered as in the vector") func isRegisteredAsInTheVector() throws {
    let vector = Vectors.one("refresh", "own-refresh")
    let url = "https://am.example.net:8443/am/json/alpha/push/sns/message?_action=register"
    let metadata = Mechanism.Metadata(
      uid: "5a0e7c1e-6b1d-4d6c-9a6e-2b8a0f6d1c11", issuer: "i", accountName: "a", registrationURL: url,
      authenticationURL: url, userID: "1f2e3d4c-0000-4000-8000-000000000001", deviceToken: "linux-token-1",
      wantedDeviceToken: "linux-token-2")
    let mechanism = Mechanism(metadata: metadata, secret: VectorTests.secret)
    let bytes = try #require(mechanism.refresh(deviceName: "desk token"))
    let body = try #require(JSONValue(parsing: bytes))
    for name in ["mechanismUid", "username"] { #expect(body[name] == vector["body"]?[name]) }
    for jwt in [body["jwt"], vector["body"]?["jwt"]] {
      let token = try JWS.Unverified(parsing: try #require(jwt?.text))
      #expect(JSONValue(parsing: try token.payload(authenticatedBy: VectorTests.secret.bytes)) == vector["claims"])
    }
  }
}
