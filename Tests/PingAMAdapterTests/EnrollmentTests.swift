// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import JSONValues
import MobileAuth
import RegistrationURIs
import Secrets
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("Registering", .timeLimit(.minutes(5))) struct EnrollmentTests {
  private let fixture: PingAMFixture
  private let trust = ServerTrust()

  init() throws { fixture = try PingAMFixture() }

  private func accounts() throws -> [AccountRecord] { try fixture.vault.accounts() }

  @Test("Makes an account that AM knows", arguments: TestAM.Version.allCases) func makesAnAccountThatAMKnows(
    version: TestAM.Version
  ) async throws {
    let fixture = try PingAMFixture(version)
    let account = try await fixture.enrolled("ann@example.net")
    #expect(account.id.text == "ann@example.net" && account.stage == .active)
    #expect(account.profile == "Example: ann@example.net")
    #expect(try fixture.vault.servers().map(\.id.text) == ["am.example:8443/am/json/alpha"])
    let profile = try #require(fixture.am.profiles.first)
    let mechanism = try #require(try Mechanism(account))
    #expect(profile.mechanismUID == mechanism.metadata.uid && profile.deviceID == mechanism.metadata.deviceToken)
    #expect(profile.communicationType == "gcm" && profile.deviceID.utf8.count == 32)
    #expect(mechanism.metadata.registration == nil)
    #expect(account.delivery?.mailbox == profile.deviceID)
    #expect(try fixture.vault.auditRows(newest: 9).compactMap(\.line?.entry.kind) == [.enrolled])
    let request = try #require(fixture.requests.withLock { $0.first })
    #expect(request.headers["Cookie"] == "amlbcookie=01")
    #expect(request.headers["Accept-API-Version"] == "resource=1.0, protocol=1.0")
    #expect(request.headers["Content-Type"] == "application/json")
  }

  /// A power loss at every write, then a retry: the same URI always results in an account that AM knows, or in one that
  /// waits for its first message because the outcome is unknown.
  @Test("Goes on after a power loss at any write") func goesOnAfterAPowerLossAtAnyWrite() async throws {
    for cut in 0..<3 {
      let registry = MemoryRegistry()
      let uri = fixture.am.registrationURI("ann \(cut)")
      registry.failWrites(after: cut)
      await #expect(throws: StateStoreError.io(call: "write", reason: "the power is gone")) {
        try await fixture.enrollment(registry: registry).enroll(uri, name: nil, trust: trust)
      }
      registry.failWrites(after: nil)
      let uid = try registry.accounts().first.flatMap { record in try Mechanism(record)?.metadata.uid }
      if cut < 2 {
        let account = try await fixture.enrollment(registry: registry).enroll(uri, name: nil, trust: trust)
        #expect(account.stage == .active)
      } else {
        // AM had accepted it; the power loss prevented its response from being stored.
        await #expect {
          try await fixture.enrollment(registry: registry).enroll(uri, name: nil, trust: trust)
        } throws: {
          if case TokenServerError.outcomeUnknown = $0 { true } else { false }
        }
        #expect(try registry.accounts().map(\.stage) == [.enrolling])
      }
      let known = try #require(fixture.am.finishRegistration(of: "ann \(cut)"))
      let record = try #require(try registry.accounts().first)
      #expect(try Mechanism(record)?.metadata.uid == known.mechanismUID)
      if let uid { #expect(known.mechanismUID == uid) }
    }
  }

  @Test("Is tried again while something is in the way") func isTriedAgainWhileSomethingIsInTheWay() async throws {
    fixture.weather.withLock { $0 = [.neverArrives, .status(503), .page(200)] }
    let uri = fixture.am.registrationURI("ann")
    let account = Task { [fixture, trust] in try await fixture.enrollment().enroll(uri, name: "desk", trust: trust) }
    for seconds in [1, 3, 8] {
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(seconds))
    }
    #expect(try await account.finished().stage == .active)
    #expect(Set(fixture.requests.withLock { $0.map(\.body) }).count == 1)
  }

  @Test("Whose answer was lost leaves an account that its first message makes active")
  func whoseAnswerWasLostLeavesAnAccountThatItsFirstMessageMakesActive() async throws {
    fixture.weather.withLock { $0 = [.answerIsLost] }
    let uri = fixture.am.registrationURI("ann")
    let account = Task { [fixture, trust] in try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: .seconds(1))
    await #expect { try await account.finished() } throws: {
      if case TokenServerError.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try accounts().map(\.stage) == [.enrolling])
    _ = fixture.am.finishRegistration(of: "ann")
    let push = try #require(fixture.am.send("ann"))
    #expect(try fixture.ingress.accept(push.envelope) == .stored(AccountID("ann")))
    #expect(try accounts().map(\.stage) == [.active])
    #expect(fixture.events.all.contains(.rosterChanged))
    #expect(try await fixture.server().pendingRequests().count == 1)
  }

  @Test("That never arrived stays, and the same URI goes on") func thatNeverArrivedStaysAndTheSameURIGoesOn()
    async throws
  {
    fixture.weather.withLock { $0 = [.neverArrives, .neverArrives, .neverArrives, .neverArrives] }
    let uri = fixture.am.registrationURI("ann")
    let first = Task { [fixture, trust] in try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    for seconds in [1, 3, 8] {
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(seconds))
    }
    await #expect(throws: TokenServerError.unreachable("the token server cannot be reached: no route")) {
      try await first.finished()
    }
    #expect(fixture.progress.withLock { $0.last }?.contains("repeat it with the same QR code") == true)
    // Messages for the user have no error number.
    #expect(fixture.progress.withLock { $0.allSatisfy { !$0.contains("(9001)") } })
    #expect(try accounts().map(\.stage) == [.enrolling])
    #expect(try await fixture.enrollment().enroll(uri, name: nil, trust: trust).stage == .active)
  }

  /// Every response after a lost one, from AM or from a gateway, now or after a restart.
  @Test("Whose answer was lost is never given up", arguments: [400, 401, 403, 404, 501], [true, false])
  func whoseAnswerWasLostIsNeverGivenUp(status: Int, isResumed: Bool) async throws {
    let uri = fixture.am.registrationURI("ann")
    if isResumed {
      let registry = CrashingRegistry(fixture.vault)
      await #expect(throws: StateStoreError.self) {
        try await fixture.enrollment(registry: registry).enroll(uri, name: nil, trust: trust)
      }
      fixture.weather.withLock { $0 = [.status(status)] }
    } else {
      fixture.weather.withLock { $0 = [.answerIsLost, .status(status)] }
    }
    let account = Task { [fixture, trust] in try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    if !isResumed {
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(1))
    }
    await #expect { try await account.finished() } throws: {
      if case TokenServerError.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try accounts().map(\.stage) == [.enrolling])
    let kept = try #require(try accounts().first)
    let mechanism = try #require(try Mechanism(kept))
    #expect(fixture.am.finishRegistration(of: "ann")?.mechanismUID == mechanism.metadata.uid)
  }

  @Test("That a message has confirmed meanwhile is kept, with any response of AM")
  func thatAMessageHasConfirmedMeanwhileIsKeptWithAnyResponseOfAM() async throws {
    fixture.weather.withLock { $0 = [.answerIsLost, .status(403)] }
    let uri = fixture.am.registrationURI("ann")
    let account = Task { [fixture, trust] in try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    await fixture.clock.untilAsleep()
    _ = fixture.am.finishRegistration(of: "ann")
    try fixture.ingress.accept(try #require(fixture.am.send("ann")).envelope)
    #expect(try accounts().map(\.stage) == [.active])
    fixture.clock.advance(by: .seconds(1))
    #expect(try await account.finished().stage == .active)
    #expect(try accounts().map(\.stage) == [.active])
    #expect(try fixture.vault.auditRows(newest: 9).compactMap(\.line?.entry.kind) == [.enrolled])
  }

  @Test("Leaves the pins of others there as they are until AM was reached", arguments: [true, false])
  func leavesThePinsOfOthersThereAsTheyAreUntilAMWasReached(
    isRefused: Bool
  ) async throws {
    func pins() throws -> [String] { try CertificatePins(try #require(try fixture.vault.servers().first)).pins }
    let pinned = ServerTrust(pins: ["the right one"])
    _ = try await fixture.enrollment().enroll(fixture.am.registrationURI("ann"), name: nil, trust: pinned)
    #expect(try pins() == ["the right one"])
    if isRefused { fixture.weather.withLock { $0 = [.status(400)] } }
    var dropping = trust
    dropping.dropsPins = true
    do {
      _ = try await fixture.enrollment().enroll(fixture.am.registrationURI("bob"), name: nil, trust: dropping)
    } catch is TokenServerError {}
    #expect(try accounts().count == (isRefused ? 1 : 2))
    #expect(try pins() == (isRefused ? ["the right one"] : []))
    let lines = try fixture.vault.auditRows(newest: 9).compactMap(\.line?.entry.kind)
    #expect(lines.contains(.pinsDropped) == !isRefused)
  }

  @Test("An enrollment without a pin keeps the pins of others") func noPinKeepsPins() async throws {
    let pinned = ServerTrust(pins: ["the right one"])
    _ = try await fixture.enrollment().enroll(fixture.am.registrationURI("ann"), name: nil, trust: pinned)
    _ = try await fixture.enrollment().enroll(fixture.am.registrationURI("bob"), name: nil, trust: trust)
    #expect(try accounts().count == 2)
    #expect(try CertificatePins(try #require(try fixture.vault.servers().first)).pins == ["the right one"])
  }

  @Test("Is tried again after what AM or a balancer could not do", arguments: [500, 504])
  func isTriedAgainAfterWhatAMOrABalancerCouldNotDo(status: Int) async throws {
    fixture.weather.withLock { $0 = [.status(status)] }
    let uri = fixture.am.registrationURI("ann")
    let account = Task { [fixture, trust] in try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: .seconds(1))
    #expect(try await account.finished().stage == .active)
    #expect(fixture.requests.withLock { $0.count } == 2 && Set(fixture.requests.withLock { $0.map(\.body) }).count == 1)
  }

  @Test(
    "That AM refuses leaves nothing",
    arguments: [
      (400, "AM refused the registration"), (404, "not set up in this realm"),
      (501, "does not support this request"),
      (401, "requires a login"), (403, "requires a login"),
    ])
  func thatAMRefusesLeavesNothing(status: Int, why: String) async throws {
    fixture.weather.withLock { $0 = [.status(status)] }
    await #expect {
      try await fixture.enrollment().enroll(fixture.am.registrationURI("ann"), name: nil, trust: trust)
    } throws: {
      "\($0)".contains(why)
    }
    #expect(try accounts().isEmpty)
  }

  @Test("With a spent code is refused") func withASpentCodeIsRefused() async throws {
    let uri = fixture.am.registrationURI("ann")
    _ = try await fixture.enrollment().enroll(uri, name: nil, trust: trust)
    try fixture.vault.wipe(account: AccountID("ann"), AuditEntry(.removed, wallClockMilliseconds: 0))
    await #expect(throws: TokenServerError.self) { try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    #expect(try accounts().isEmpty)
  }

  @Test("Twice for one user, or under a name that is taken, is refused before a request to AM")
  func twiceForOneUserOrUnderANameThatIsTakenIsRefusedBeforeARequestToAM() async throws {
    try await fixture.enrolled()
    fixture.requests.withLock { $0 = [] }
    await #expect(throws: TokenServerError.alreadyEnrolled("it is the account \"ann\"")) {
      try await fixture.enrollment().enroll(fixture.am.registrationURI("ann"), name: "other", trust: trust)
    }
    await #expect(throws: TokenServerError.alreadyEnrolled("there is an account \"ann\" already; choose another name"))
    {
      try await fixture.enrollment().enroll(fixture.am.registrationURI("bob"), name: "ann", trust: trust)
    }
    #expect(fixture.requests.withLock { $0.isEmpty })
  }

  @Test("Keeps the name of an account that must be enrolled again, with any outcome")
  func keepsTheNameOfAnAccountThatMustBeEnrolledAgainWithAnyOutcome() async throws {
    try await fixture.enrolled()
    let entry = AuditEntry(.disenrolled, wallClockMilliseconds: 0)
    try fixture.vault.dropKeys(of: AccountID("ann"), entry)
    fixture.weather.withLock { $0 = [.status(400)] }
    await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment().enroll(fixture.am.registrationURI("ann"), name: nil, trust: trust)
    }
    #expect(try accounts().map(\.stage) == [.mustEnrollAgain])
    #expect(
      try await fixture.enrollment().enroll(fixture.am.registrationURI("ann"), name: nil, trust: trust).id.text == "ann"
    )
    #expect(try accounts().map(\.stage) == [.active])
  }

  @Test("Over plain http is refused") func overPlainHttpIsRefused() async throws {
    let am = TestAM(base: "http://am.example/am", realm: "") { 0 }
    await #expect(throws: RegistrationURI.ParseError.notHTTPS) {
      try await fixture.enrollment().enroll(am.registrationURI("ann"), name: nil, trust: trust)
    }
    #expect(try accounts().isEmpty)
  }
}
