// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Synchronization
import Testing

@testable import PrivacyIDEAAdapter

@Suite("Enrolling", .timeLimit(.minutes(5))) struct EnrollmentTests {
  private let fixture = EnrollmentFixture()
  private let trust = ServerTrust()

  @Test("Makes an account that polls") func makesAnAccountThatPolls() async throws {
    let account = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(account.id.text == "PIPU1" && account.stage == .active)
    #expect(try await fixture.isUsable("PIPU1"))
    #expect(try fixture.registry.servers().map(\.id.text) == ["pi.example/ttype/push"])
    #expect(fixture.registry.audit.map(\.kind) == [.enrolled])
    #expect(try fixture.credentials("PIPU1")?.next == nil)
  }

  /// Fails if what the other kind has stored is read as pins: the vault would count as damaged.
  @Test("Refuses the URL of a server of another kind") func refusesAServerOfAnotherKind() async throws {
    let id = TokenServerID("pi.example/ttype/push")
    try fixture.registry.put(
      TokenServerRecord(id: id, kind: "other", url: FakePushServer.endpoint, secrets: SecretBytes(copying: [1])))
    let refusal = TokenServerError.alreadyEnrolled("\(id) is known as a token server of another kind")
    await #expect(throws: refusal) {
      try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    }
  }

  @Test("Makes a key with as many bits as the settings say") func makesAKeyWithAsManyBitsAsTheSettingsSay() async throws
  {
    #expect(PushEnrollment.Settings().keyBits == 3072)
    for (serial, bits) in [("PIPU1", 2048), ("PIPU2", 3072)] {
      var settings = PushEnrollment.Settings()
      settings.keyBits = bits
      let enrollment = PushEnrollment(
        registry: fixture.registry, in: fixture.environment, settings: settings, pinPrompter: nil, progress: { _ in },
        makeHTTPTransport: { [fixture] _ in fixture.http })
      _ = try await enrollment.enroll(fixture.server.prepare(serial), name: nil, trust: trust)
      #expect(try await fixture.isUsable(serial))
      #expect(fixture.server.state.withLock { $0.keys[serial]?.bits } == bits)
    }
  }

  @Test("Has a new gateway address each time, only with an MQTT subscriber")
  func hasANewGatewayAddressEachTimeOnlyWithAnMQTTSubscriber() async throws {
    for (serial, listens) in [("PIPU1", false), ("PIPU2", true), ("PIPU3", true)] {
      let enrollment = fixture.enrollment { $0.hasGatewayAddress = listens }
      _ = try await enrollment.enroll(fixture.server.prepare(serial), name: nil, trust: trust)
    }
    let gatewayAddresses = fixture.server.state.withLock { $0.gatewayAddresses }
    #expect(gatewayAddresses.first == "no_firebase_token" && Set(gatewayAddresses).count == 3)
    #expect(gatewayAddresses.dropFirst().allSatisfy { $0.count == 36 })
  }

  /// A power loss at every write, and again during the retry: the same URL always results in an account that polls.
  @Test("Goes on after a power loss at any write") func goesOnAfterAPowerLossAtAnyWrite() async throws {
    for cut in 0..<3 {
      let fixture = EnrollmentFixture()
      let uri = fixture.server.prepare("PIPU1")
      fixture.registry.failWrites(after: cut)
      await #expect(throws: StateStoreError.io(call: "write", reason: "the power is gone")) {
        try await fixture.enrollment().enroll(uri, name: "desk", trust: trust)
      }
      fixture.registry.failWrites(after: nil)
      guard cut < 2 else {
        // The server accepted the key, and a power loss prevented the server's key from being stored: no retry can get
        // it again.
        await #expect(throws: TokenServerError.self) {
          try await fixture.enrollment().enroll(uri, name: "desk", trust: trust)
        }
        #expect(try fixture.registry.accounts().isEmpty)
        continue
      }
      _ = try await fixture.enrollment().enroll(uri, name: "desk", trust: trust)
      #expect(try await fixture.isUsable("desk"))
    }
  }

  @Test("The key is stored before the server receives it, and is the key that it receives")
  func keyIsStoredBeforeTheServerReceivesItAndIsTheKeyThatItReceives() async throws {
    let uri = fixture.server.prepare("PIPU1")
    fixture.weather.withLock { $0 = [.neverArrives, .neverArrives] }
    await #expect(throws: TokenServerError.unreachable("the token server cannot be reached: no route")) {
      try await fixture.enrollment().enroll(uri, name: nil, trust: trust)
    }
    let key = try #require(try fixture.credentials("PIPU1")?.next?.key)
    #expect(try fixture.registry.accounts().map(\.stage) == [.enrolling])
    _ = try await fixture.enrollment().enroll(uri, name: nil, trust: trust)
    #expect(try fixture.credentials("PIPU1")?.active?.device.publicKeyOnTheWire == key.publicKeyOnTheWire)
    #expect(try await fixture.isUsable("PIPU1"))
  }

  @Test("A connection that is lost before the request arrived is retried once")
  func connectionThatIsLostBeforeTheRequestArrivedIsRetriedOnce() async throws {
    fixture.weather.withLock { $0 = [.neverArrives] }
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try await fixture.isUsable("PIPU1"))
    // A message for the user has no error number.
    let retries = fixture.progress.withLock { $0.filter { $0.hasSuffix("; retrying once") } }
    #expect(retries.count == 1 && !retries[0].contains("(9001)"))
  }

  @Test("After a lost answer the message asks for another URL, and nothing stays")
  func afterALostAnswerTheMessageAsksForAnotherURLAndNothingStays() async throws {
    fixture.weather.withLock { $0 = [.answerIsLost] }
    let lost = await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    }
    #expect(lost?.number == 9016 && lost?.explanation.contains("ask for a new enrollment URL") == true)
    #expect(try fixture.registry.accounts().isEmpty)
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try await fixture.isUsable("PIPU1"))
  }

  @Test("A known serial gets new keys, and keeps its name") func knownSerialGetsNewKeysAndKeepsItsName() async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: "desk", trust: trust)
    let former = try #require(try fixture.credentials("desk")?.active?.device.publicKeyOnTheWire)
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try fixture.registry.accounts().map(\.id.text) == ["desk"])
    #expect(try fixture.credentials("desk")?.active?.device.publicKeyOnTheWire != former)
    #expect(try await fixture.isUsable("desk"))
  }

  @Test("The old keys count until the server has taken the new ones")
  func oldKeysCountUntilTheServerHasTakenTheNewOnes() async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    let uri = fixture.server.prepare("PIPU1")
    fixture.weather.withLock { $0 = [.neverArrives, .neverArrives] }
    await #expect(throws: TokenServerError.self) { try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    #expect(try await fixture.isUsable("PIPU1"))
    #expect(try fixture.credentials("PIPU1")?.next != nil)
    // A wrong URL for a known serial deletes nothing either.
    let wrong = uri.replacing("enrollment_credential=", with: "enrollment_credential=f")
    await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment().enroll(wrong, name: nil, trust: trust)
    }
    #expect(try await fixture.isUsable("PIPU1"))
    #expect(try fixture.credentials("PIPU1")?.next == nil)
    _ = try await fixture.enrollment().enroll(uri, name: nil, trust: trust)
    #expect(try await fixture.isUsable("PIPU1"))
  }

  /// Fails if the enrollment does not change: the server refuses the former keys as soon as it has the new ones.
  @Test("A revocation of the former keys does not reach the new ones, even while they are being sent")
  func revocationOfFormerKeys() async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    let server = try #require(try fixture.registry.servers().first)
    let known = Enrollments(server, try fixture.registry.accounts())
    let loss = try #require(EnrollmentRevocation(.disenrolled, at: server.id, AccountID("PIPU1"), of: known))
    let uri = fixture.server.prepare("PIPU1")
    fixture.weather.withLock { $0 = [.neverArrives, .neverArrives] }
    await #expect(throws: TokenServerError.self) { try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    #expect(try loss.apply(on: fixture.registry, in: fixture.environment) == .enrolledAgain)
    _ = try await fixture.enrollment().enroll(uri, name: nil, trust: trust)
    #expect(try loss.apply(on: fixture.registry, in: fixture.environment) == .enrolledAgain)
    #expect(try await fixture.isUsable("PIPU1"))
  }

  @Test("An account that lost its keys is enrolled again under its name")
  func accountThatLostItsKeysIsEnrolledAgainUnderItsName() async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: "desk", trust: trust)
    try fixture.registry.dropKeys(of: AccountID("desk"), AuditEntry(.disenrolled, wallClockMilliseconds: 0))
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try await fixture.isUsable("desk"))
  }

  @Test("An expired URL is dropped") func expiredURLIsDropped() async throws {
    let uri = fixture.server.prepare("PIPU1")
    fixture.weather.withLock { $0 = [.neverArrives, .neverArrives] }
    await #expect(throws: TokenServerError.self) { try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    fixture.clock.advance(by: .seconds(600))
    await #expect(throws: TokenServerError.refused("the enrollment URL has expired; ask for a new one")) {
      try await fixture.enrollment().enroll(uri, name: nil, trust: trust)
    }
    #expect(try fixture.registry.accounts().isEmpty)
  }

  @Test("Two accounts have two names") func twoAccountsHaveTwoNames() async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: "desk", trust: trust)
    await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment().enroll(fixture.server.prepare("PIPU2"), name: "desk", trust: trust)
    }
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU2"), name: nil, trust: trust)
    #expect(try fixture.registry.accounts().map(\.id.text) == ["PIPU2", "desk"])
  }

  @Test("Certificates are verified unless a pin or an authority is named")
  func certificatesAreVerifiedUnlessAPinOrAnAuthorityIsNamed() async throws {
    let uri = fixture.server.prepare("PIPU1").replacing("sslverify=1", with: "sslverify=0")
    await #expect(throws: TokenServerError.self) { try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    #expect(try fixture.registry.accounts().isEmpty)
    _ = try await fixture.enrollment().enroll(uri, name: nil, trust: ServerTrust(pins: ["pin"]))
    #expect(try CertificatePins(try #require(try fixture.registry.servers().first)).pins == ["pin"])
  }

  @Test("An untrusted certificate is not retried, and leaves no account")
  func untrustedCertificateIsFinal() async throws {
    let calls = Mutex(0)
    let http = RecordingHTTPTransport { (_: HTTPRequest) throws(HTTPTransportError) in
      calls.withLock { $0 += 1 }
      throw .untrusted("self-signed certificate")
    }
    var settings = PushEnrollment.Settings()
    settings.keyBits = 2048
    let enrollment = PushEnrollment(
      registry: fixture.registry, in: fixture.environment, settings: settings, pinPrompter: nil, progress: { _ in },
      makeHTTPTransport: { _ in http })
    let fault = TokenServerError.untrusted(HTTPTransportError.untrusted("self-signed certificate").description)
    await #expect(throws: fault) {
      try await enrollment.enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    }
    #expect(calls.withLock { $0 } == 1)
    #expect(try fixture.registry.accounts().isEmpty)
  }

  @Test("The pins of others there stay until the server was reached with these")
  func pinsOfOthersThereStayUntilTheServerWasReachedWithThese() async throws {
    func pins() throws -> [String] { try CertificatePins(try #require(try fixture.registry.servers().first)).pins }
    let pinned = ServerTrust(pins: ["the right one"])
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: pinned)
    let spent = fixture.server.prepare("PIPU2").replacing("PIPU2", with: "PIPU9")
    await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment().enroll(spent, name: nil, trust: trust)
    }
    #expect(try pins() == ["the right one"])
    // An enrollment without a pin keeps the pins of others.
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU3"), name: nil, trust: trust)
    #expect(try pins() == ["the right one"])
    #expect(!fixture.registry.audit.contains { $0.kind == .pinsDropped })
    var dropping = trust
    dropping.dropsPins = true
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU4"), name: nil, trust: dropping)
    #expect(try pins() == [])
    #expect(fixture.registry.audit.filter { $0.kind == .pinsDropped }.count == 1)
  }

  @Test(
    "A wrong clock is set by the server's", arguments: [Duration.seconds(1_795_253_339), .seconds(90), .seconds(-90)])
  func wrongClockIsSetByTheServers(drift: Duration) async throws {
    let clock = ManualClock(
      wallClockMilliseconds: drift > .seconds(1000) ? 0 : 1_795_253_339_000)
    let server = FakePushServer(clock: clock)
    server.state.withLock { $0.drift = drift }
    let key = try RSAPrivateKey(bits: 2048)
    server.state.withLock { $0.keys["PIPU1"] = key.publicKey }
    let client = PushClient(
      endpoint: FakePushServer.endpoint, http: RecordingHTTPTransport { server.respond(to: $0) },
      clock: ResponseClock(in: .test(clock)))
    let first = try await client.poll(serial: "PIPU1", key: .rsa(key))
    // Nothing was signed with a time in 1970: the board asked for the time first.
    #expect(first.correctedClock.map { $0 - .seconds(90) < .seconds(2) } ?? (drift > .seconds(1000)))
    #expect(server.state.withLock { $0.polls.count } == 2)
    #expect(try await client.poll(serial: "PIPU1", key: .rsa(key)).correctedClock == nil)
    #expect(server.state.withLock { $0.polls.count } == 3)
  }
}
