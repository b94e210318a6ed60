import ApprovalTestKit
import Courier
import Cryptography
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Synchronization
import Testing

@testable import ReferenceAdapter

/// A removal that the server did not sign is effective when it is repeated a minute later, over a new connection and
/// with a new access token.
@Suite(.timeLimit(.minutes(5))) struct RevocationTests {
  private let server: FakeServer
  private let courier: RecordingCourier
  private let adapter: ReferenceTokenServer

  init() throws {
    server = try FakeServer()
    courier = server.makeCourier()
    adapter = try server.adapter(courier)
    validate(removing: [])
  }

  private func validate(removing profiles: [String]) {
    let response = ValidationResponse(
      configuration: DeviceConfiguration(
        transports: [.sse], openPGPProfiles: [], minimumSoftwareVersion: "0", pinPolicy: nil, serverTimeMs: 1),
      removedProfiles: profiles, disenrolledProfiles: [])
    server.on("/validations") { _ in HTTPResponse(status: 200, body: JSON.encode(response)) }
  }

  @Test("A single unsigned response removes no device, a second one does")
  func unsignedDeviceRemoval() async throws {
    server.on("/validations", problem: .deviceDeregistered)
    for seconds in [0, 1, 58] {
      server.timekeeper.advance(by: .seconds(seconds))
      await #expect(throws: TokenServerFault.unconfirmedRemoval(number: 9002)) { try await adapter.validate() }
    }
    let early = courier.requests.filter { $0.wantsNewConnection }
    #expect(early.isEmpty)
    let tokens = server.tokensGiven
    server.timekeeper.advance(by: .seconds(1))
    await #expect(throws: TokenServerFault.deviceDeregistered) { try await adapter.validate() }
    #expect(server.tokensGiven == tokens + 1)
    #expect(courier.requests.last?.wantsNewConnection == true)
  }

  @Test("A removal that the second response does not repeat has no effect")
  func removalTakenBack() async throws {
    server.on("/pending") { [server] _ in
      let entry = PendingEntry(
        transactionID: FakeServer.transaction, profileID: "PROFIL", message: nil, typeHint: nil, sentAtMs: 1,
        timeToLiveMs: 60_000, expiresInMs: 5, supersededBy: nil)
      _ = server
      return HTTPResponse(status: 200, body: JSON.encode(PendingList(serverTimeMs: 1, requests: [entry])))
    }
    validate(removing: ["PROFIL"])
    let first = try await adapter.validate()
    #expect(first.removedAccounts.isEmpty && first.unconfirmedRemovals == [AccountID("A")])
    #expect(try await adapter.pendingRequests().isEmpty)
    server.timekeeper.advance(by: .seconds(60))
    validate(removing: [])
    #expect(try await adapter.validate() == Validation())
    #expect(try await adapter.pendingRequests().count == 1)
  }

  @Test("An account is removed after two unsigned responses")
  func accountRemovedTwice() async throws {
    server.on("/requests/\(FakeServer.transaction)/message", problem: .userDeregistered)
    await #expect(throws: TokenServerFault.unconfirmedRemoval(number: 9003)) { try await adapter.open(server.pending) }
    validate(removing: ["PROFIL"])
    server.timekeeper.advance(by: .seconds(59))
    #expect(try await adapter.validate().removedAccounts.isEmpty)
    server.timekeeper.advance(by: .seconds(1))
    #expect(try await adapter.validate().removedAccounts == [AccountID("A")])
  }

  @Test("A proven revocation is effective at once")
  func provenRevocation() {
    let revocations = Revocations(server.timekeeper)
    revocations.use { _ in [.profile("PROFIL")] }
    let answer = HTTPResponse(status: 401)
    func judge(_ profile: String?) -> TokenServerFault {
      revocations.judge(.userDeregistered, answer, about: profile, isSecondAsk: false)
    }
    #expect(judge("PROFIL") == .userDeregistered)
    #expect(judge("OTHER") == .unconfirmedRemoval(number: 9003))
    #expect(revocations.isStopped("OTHER") && !revocations.isStopped("PROFIL"))
  }

  @Test("A signed notice is effective at once, and only for the account that it names")
  func signedNotice() async throws {
    func notice(_ profile: String, by signer: OpenPGPKey) throws -> String {
      let text = """
        {"v":1,"kind":"revocation","iss":"\(FakeServer.url)","client_id":"\(FakeServer.clientID)",\
        "profile_id":"\(profile)","scope":"user"}
        """
      return try signer.seal(Array(text.utf8), to: server.token.certificate).base64
    }
    let stranger = try OpenPGPKey.generate(userID: "stranger")
    for (text, counts) in [
      (try notice("PROFIL", by: server.server), true), (try notice("OTHER", by: server.server), false),
      (try notice("PROFIL", by: stranger), false), ("no message", false),
    ] {
      let problem = JSON.encode(Problem(.userDeregistered, issuer: FakeServer.url, detail: "d"))
      let body = Array(#"{"revocations":["\#(text)"],"#.utf8) + problem.dropFirst()
      server.on("/requests/\(FakeServer.transaction)/message") { _ in HTTPResponse(status: 403, body: body) }
      let adapter = try server.adapter(server.makeCourier())
      let fault = counts ? TokenServerFault.userDeregistered : .unconfirmedRemoval(number: 9003)
      await #expect(throws: fault) { try await adapter.open(server.pending) }
    }
  }

  @Test("The listener wakes when the second query is due", .timeLimit(.minutes(1)))
  func secondAskIsDue() async throws {
    let revocations = Revocations(server.timekeeper)
    let (asks, asking) = AsyncStream.makeStream(of: Void.self)
    let watching = Task { try await revocations.watch { asking.yield() } }
    #expect(!revocations.counts(.device, isSecondAsk: true))
    await server.timekeeper.untilAsleep()
    server.timekeeper.advance(by: Revocations.pause)
    var iterator = asks.makeAsyncIterator()
    #expect(await iterator.next() != nil)
    #expect(revocations.isSecondAskDue)
    watching.cancel()
  }
}
