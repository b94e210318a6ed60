// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
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
  private let http: RecordingHTTPTransport
  private let adapter: ReferenceServerClient

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
    adapter = try server.adapter(http)
    validate(removing: [])
  }

  private func validate(removing profiles: [String], disenrolling others: [String] = []) {
    let response = ValidationResponse(
      configuration: DeviceConfiguration(
        transports: [.sse], openPGPProfiles: [], minimumSoftwareVersion: "0", pinPolicy: nil, serverTimeMs: 1),
      removedProfiles: profiles, disenrolledProfiles: others)
    server.on("/validations") { _ in HTTPResponse(status: 200, body: JSON.encode(response)) }
  }

  @Test("A single unsigned response removes no device, a second one does")
  func unsignedDeviceRemoval() async throws {
    server.on("/validations", problem: .deviceDeregistered)
    for seconds in [0, 1, 58] {
      server.clock.advance(by: .seconds(seconds))
      await #expect(throws: TokenServerError.unconfirmedRemoval(number: 9002)) { try await adapter.validate() }
    }
    let early = http.requests.filter { $0.idleLimit == .zero }
    #expect(early.isEmpty)
    let tokens = server.tokensGiven
    server.clock.advance(by: .seconds(1))
    await #expect(throws: TokenServerError.deviceDeregistered) { try await adapter.validate() }
    #expect(server.tokensGiven == tokens + 1)
    #expect(http.requests.last?.idleLimit == .zero)
  }

  @Test("A removal that the second response does not repeat has no effect")
  func removalTakenBack() async throws {
    server.on("/pending") { [server] _ in
      let entry = PendingEntry(
        transactionID: FakeServer.transaction, profileID: "PROFIL", message: nil, typeHint: nil, sentAtMs: 1,
        timeToLiveMs: 60_000, expiresInMs: 5)
      _ = server
      return HTTPResponse(status: 200, body: JSON.encode(PendingList(serverTimeMs: 1, requests: [entry])))
    }
    validate(removing: ["PROFIL"])
    let first = try await adapter.validate()
    #expect(first.removedAccounts.isEmpty && first.unconfirmedRemovals == [AccountID("A")])
    #expect(try await adapter.pendingRequests().isEmpty)
    server.clock.advance(by: .seconds(60))
    validate(removing: [])
    #expect(try await adapter.validate() == Validation())
    #expect(try await adapter.pendingRequests().count == 1)
  }

  @Test("An account is removed after two unsigned responses")
  func accountRemovedTwice() async throws {
    server.on("/requests/\(FakeServer.transaction)/message", problem: .userDeregistered)
    await #expect(throws: TokenServerError.unconfirmedRemoval(number: 9003)) { try await adapter.open(server.pending) }
    validate(removing: ["PROFIL"])
    server.clock.advance(by: .seconds(59))
    #expect(try await adapter.validate().removedAccounts.isEmpty)
    server.clock.advance(by: .seconds(1))
    #expect(try await adapter.validate().removedAccounts == [AccountID("A")])
  }

  /// Fails if an enrollment that the server refuses deletes accounts that it may still know, and their PINs.
  @Test("A refused device registers again only while all accounts there are being enrolled")
  func refusedRegistration() throws {
    var record = try #require(server.registry.accounts().first)
    for (stage, isUnused) in [(EnrollmentStage.enrolling, true), (.active, false), (.mustEnrollAgain, false)] {
      record.stage = stage
      #expect(Enrollment.isUnused(record.server, by: [record]) == isUnused, "\(stage)")
      #expect(Enrollment.isUnused(TokenServerID("elsewhere.example"), by: [record]), "\(stage)")
    }
  }

  /// Fails if one unsigned response removes an account that has lost its keys: it still has its PIN.
  @Test("An account that must be enrolled again is removed after two unsigned responses")
  func accountWithoutKeysRemovedTwice() async throws {
    var record = try #require(server.registry.accounts().first)
    record.stage = .mustEnrollAgain
    try server.registry.put(record, nil)
    let adapter = try server.reopened(http)
    validate(removing: ["PROFIL"])
    let first = try await adapter.validate()
    #expect(first.removedAccounts.isEmpty && first.unconfirmedRemovals == [AccountID("A")])
    server.clock.advance(by: .seconds(60))
    #expect(try await adapter.validate().removedAccounts == [AccountID("A")])
  }

  /// Fails if each name is checked against the whole response: that took hours.
  @Test("Removals of unknown profiles and repetitions cost nothing and are not remembered")
  func longListOfRemovals() async throws {
    let others = (0..<20_000).map { "OTHER\($0)" }
    validate(
      removing: others + Array(repeating: "PROFIL", count: 20_000),
      disenrolling: others + Array(repeating: "PROFIL", count: 20_000))
    let validation = try await adapter.validate()
    #expect(validation.unconfirmedRemovals == [AccountID("A")])
    #expect(validation.unconfirmedDisenrollments == [AccountID("A")])
    #expect(!adapter.revocations.isStopped("OTHER0") && adapter.revocations.isStopped("PROFIL"))
  }

  @Test("The loss of keys in an unsigned response takes effect after a second one", arguments: [true, false])
  func keysGoneTwice(isSaidAgain: Bool) async throws {
    validate(removing: [], disenrolling: ["PROFIL"])
    let first = try await adapter.validate()
    #expect(first.disenrolledAccounts.isEmpty && first.unconfirmedDisenrollments == [AccountID("A")])
    #expect(first.unconfirmedRemovals.isEmpty)
    server.clock.advance(by: .seconds(59))
    #expect(try await adapter.validate().disenrolledAccounts.isEmpty)
    server.clock.advance(by: .seconds(1))
    let tokens = server.tokensGiven
    if !isSaidAgain { validate(removing: []) }
    let second = try await adapter.validate()
    #expect(second.disenrolledAccounts == (isSaidAgain ? [AccountID("A")] : []))
    #expect(second.removedAccounts.isEmpty && second.unconfirmedDisenrollments.isEmpty)
    #expect(server.tokensGiven == tokens + 1)
  }

  @Test(
    "An unsigned 9020 or 9021 for a request stops the account and deletes nothing",
    arguments: [(Problem.Slug.disenrolled, 9020), (.notEnrolled, 9021)])
  func unsignedKeyLoss(slug: Problem.Slug, number: Int) async throws {
    server.on("/requests/\(FakeServer.transaction)/message", problem: slug)
    await #expect(throws: TokenServerError.unconfirmedRemoval(number: number)) {
      try await adapter.open(server.pending)
    }
    server.clock.advance(by: .seconds(60))
    validate(removing: [], disenrolling: ["PROFIL"])
    #expect(try await adapter.validate().disenrolledAccounts == [AccountID("A")])
  }

  @Test("A notice about keys proves the loss of keys, and no removal of the profile")
  func keysNotice() async throws {
    let notice = JSON.encode(
      RevocationNotice(iss: FakeServer.url, clientID: FakeServer.clientID, profileID: "PROFIL", scope: .keys))
    let sealed = try server.server.seal(notice, to: server.token.certificate).base64
    func answer(_ slug: Problem.Slug) {
      let problem = JSON.encode(Problem(slug, issuer: FakeServer.url, detail: "d"))
      let body = Array(#"{"revocations":["\#(sealed)"],"#.utf8) + problem.dropFirst()
      server.on("/requests/\(FakeServer.transaction)/message") { _ in HTTPResponse(status: 403, body: body) }
    }
    answer(.disenrolled)
    await #expect(throws: TokenServerError.disenrolled) { try await adapter.open(server.pending) }
    answer(.userDeregistered)
    await #expect(throws: TokenServerError.unconfirmedRemoval(number: 9003)) { try await adapter.open(server.pending) }
  }

  @Test("A proven revocation takes effect at once")
  func provenRevocation() {
    let revocations = Revocations(in: .test(server.clock))
    revocations.use { _ in [.profile("PROFIL")] }
    let answer = HTTPResponse(status: 401)
    func check(_ profile: String?) -> TokenServerError {
      revocations.check(.userDeregistered, answer, about: profile, isSecondAsk: false)
    }
    #expect(check("PROFIL") == .userDeregistered)
    #expect(check("OTHER") == .unconfirmedRemoval(number: 9003))
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
      let adapter = try server.adapter(server.makeHTTPTransport())
      let fault = counts ? TokenServerError.userDeregistered : .unconfirmedRemoval(number: 9003)
      await #expect(throws: fault) { try await adapter.open(server.pending) }
    }
  }

  /// Fails if the first unsigned response wipes the account, or if the second query is too early.
  @Test(
    "Before it accepts a removal, an enrollment asks again after a minute, with a new connection and a new token",
    arguments: [true, false])
  func enrollmentAsksAgain(isGone: Bool) async throws {
    let registry = MemoryRegistry()
    let server = try FakeServer(registry: registry)
    let http = server.makeHTTPTransport()
    _ = try server.adapter(http)
    server.on("/configuration", problem: .deviceDeregistered)
    let enrollment = Enrollment(registry: registry, in: server.environment, pinPrompter: nil, progress: { _ in }) {
      _ in http
    }
    let uri = ActivationURI(
      server: FakeServer.url, code: try #require(ActivationCode("0000000000000")), pins: [])
    let running = Task {
      try await enrollment.enroll(
        uri, name: "new", trust: ServerTrust(),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    }
    await server.clock.untilAsleep()
    let (asked, tokens) = (http.requests.count, server.tokensGiven)
    server.clock.advance(by: .seconds(59))
    #expect(http.requests.count == asked)
    #expect(registry.audit.isEmpty)
    if !isGone {
      let configuration = DeviceConfiguration(
        transports: [.sse], openPGPProfiles: [], minimumSoftwareVersion: "0", pinPolicy: nil, serverTimeMs: 1)
      server.on("/configuration") { _ in HTTPResponse(status: 200, body: JSON.encode(configuration)) }
    }
    server.clock.advance(by: .seconds(1))
    // The fake server implements no further step, so the enrollment fails.
    await #expect(throws: TokenServerError.self) { try await running.finished() }
    let second = http.requests.dropFirst(asked).first { $0.url.hasSuffix("/configuration") }
    #expect(second?.idleLimit == .zero)
    #expect(server.tokensGiven > tokens)
    #expect(registry.audit.contains { $0.kind == .wiped } == isGone)
    #expect(try registry.accounts().contains { $0.id == AccountID("A") } == !isGone)
  }

  @Test("The time for the second ask wakes the listener")
  func secondAskIsDue() async throws {
    let revocations = Revocations(in: .test(server.clock))
    let (asks, asking) = AsyncStream.makeStream(of: Void.self)
    let watching = Task { try await revocations.watch { asking.yield() } }
    #expect(!revocations.counts(.device, isSecondAsk: true))
    await server.clock.untilAsleep()
    server.clock.advance(by: Revocations.pause)
    var iterator = asks.makeAsyncIterator()
    #expect(await iterator.next() != nil)
    #expect(revocations.isSecondAskDue)
    watching.cancel()
  }
}
