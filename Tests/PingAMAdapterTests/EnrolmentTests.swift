// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Cryptography
import JSONValues
import MobileAuth
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `Registering` {
  private let world: AMWorld
  private let trust = ServerTrust()

  init() throws { world = try AMWorld() }

  private func accounts() throws -> [AccountRecord] { try world.vault.accounts() }

  @Test(arguments: TestAM.Version.allCases) func `Makes an account that AM knows`(version: TestAM.Version) async throws
  {
    let world = try AMWorld(version)
    let account = try await world.enrolled("ann@example.net")
    #expect(account.id.text == "ann@example.net" && account.stage == .active)
    #expect(account.profile == "Example: ann@example.net")
    #expect(try world.vault.servers().map(\.id.text) == ["am.example:8443/am/json/alpha"])
    let profile = try #require(world.am.profiles.first)
    let mechanism = try #require(try Mechanism(account))
    #expect(profile.mechanismUID == mechanism.facts.uid && profile.deviceID == mechanism.facts.deviceToken)
    #expect(profile.communicationType == "gcm" && profile.deviceID.utf8.count == 32)
    #expect(mechanism.facts.registration == nil)
    #expect(try PingAM.mailbox(of: account) == profile.deviceID)
    #expect(try world.vault.auditLines(newest: 9).map(\.entry.kind) == [.enrolled])
    let request = try #require(world.requests.withLock { $0.first })
    #expect(request.headers["Cookie"] == "amlbcookie=01")
    #expect(request.headers["Accept-API-Version"] == "resource=1.0, protocol=1.0")
    #expect(request.headers["Content-Type"] == "application/json")
  }

  /// A power loss at every write, then a retry: the same URI always results in an account that AM knows, or in one that
  /// waits for its first message because the outcome is unknown.
  @Test func `Goes on after a power loss at any write`() async throws {
    for cut in 0..<3 {
      let registry = MemoryRegistry()
      let uri = world.am.registrationURI("ann \(cut)")
      registry.cut(after: cut)
      await #expect(throws: CustodyFault.storage("the power is gone")) {
        try await world.enrolment(registry: registry).enrol(uri, name: nil, trust: trust)
      }
      registry.cut(after: nil)
      let uid = try registry.accounts().first.flatMap { record in try Mechanism(record)?.facts.uid }
      if cut < 2 {
        let account = try await world.enrolment(registry: registry).enrol(uri, name: nil, trust: trust)
        #expect(account.stage == .active)
      } else {
        // AM had accepted it; the power loss prevented its response from being stored.
        await #expect { try await world.enrolment(registry: registry).enrol(uri, name: nil, trust: trust) } throws: {
          if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
        }
        #expect(try registry.accounts().map(\.stage) == [.enrolling])
      }
      let known = try #require(world.am.finishRegistration(of: "ann \(cut)"))
      let record = try #require(try registry.accounts().first)
      #expect(try Mechanism(record)?.facts.uid == known.mechanismUID)
      if let uid { #expect(known.mechanismUID == uid) }
    }
  }

  @Test func `Is tried again while something is in the way`() async throws {
    world.weather.withLock { $0 = [.neverArrives, .status(503), .page] }
    let uri = world.am.registrationURI("ann")
    let account = Task { [world, trust] in try await world.enrolment().enrol(uri, name: "desk", trust: trust) }
    for seconds in [1, 3, 8] {
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(seconds))
    }
    #expect(try await account.value.stage == .active)
    #expect(Set(world.requests.withLock { $0.map(\.body) }).count == 1)
  }

  @Test func `Whose answer was lost leaves an account that its first message makes active`() async throws {
    world.weather.withLock { $0 = [.answerIsLost] }
    let uri = world.am.registrationURI("ann")
    let account = Task { [world, trust] in try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    await world.timekeeper.untilAsleep()
    world.timekeeper.advance(by: .seconds(1))
    await #expect { try await account.value } throws: {
      if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try accounts().map(\.stage) == [.enrolling])
    _ = world.am.finishRegistration(of: "ann")
    let push = try #require(world.am.send("ann"))
    #expect(try world.ingress.accept(push.envelope) == .kept(AccountID("ann")))
    #expect(try accounts().map(\.stage) == [.active])
    #expect(world.told.all.contains(.rosterChanged))
    #expect(try await world.server().pendingRequests().count == 1)
  }

  @Test func `That never arrived stays, and the same URI goes on`() async throws {
    world.weather.withLock { $0 = [.neverArrives, .neverArrives, .neverArrives, .neverArrives] }
    let uri = world.am.registrationURI("ann")
    let first = Task { [world, trust] in try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    for seconds in [1, 3, 8] {
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(seconds))
    }
    await #expect(throws: TokenServerFault.unreachable("the token server cannot be reached: no route")) {
      try await first.value
    }
    #expect(world.progress.withLock { $0.last }?.contains("repeat it with the same QR code") == true)
    #expect(try accounts().map(\.stage) == [.enrolling])
    #expect(try await world.enrolment().enrol(uri, name: nil, trust: trust).stage == .active)
  }

  /// Every response after a lost one, from AM or from a gateway, now or after a restart.
  @Test(arguments: [400, 401, 403, 404, 501], [true, false])
  func `Whose answer was lost is never given up`(status: Int, isResumed: Bool) async throws {
    let uri = world.am.registrationURI("ann")
    if isResumed {
      let registry = CutRegistry(world.vault)
      await #expect(throws: CustodyFault.self) {
        try await world.enrolment(registry: registry).enrol(uri, name: nil, trust: trust)
      }
      world.weather.withLock { $0 = [.status(status)] }
    } else {
      world.weather.withLock { $0 = [.answerIsLost, .status(status)] }
    }
    let account = Task { [world, trust] in try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    if !isResumed {
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(1))
    }
    await #expect { try await account.value } throws: {
      if case TokenServerFault.outcomeUnknown = $0 { true } else { false }
    }
    #expect(try accounts().map(\.stage) == [.enrolling])
    let kept = try #require(try accounts().first)
    let mechanism = try #require(try Mechanism(kept))
    #expect(world.am.finishRegistration(of: "ann")?.mechanismUID == mechanism.facts.uid)
  }

  @Test func `That a message has confirmed meanwhile is kept, with any response of AM`() async throws {
    world.weather.withLock { $0 = [.answerIsLost, .status(403)] }
    let uri = world.am.registrationURI("ann")
    let account = Task { [world, trust] in try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    await world.timekeeper.untilAsleep()
    _ = world.am.finishRegistration(of: "ann")
    try world.ingress.accept(try #require(world.am.send("ann")).envelope)
    #expect(try accounts().map(\.stage) == [.active])
    world.timekeeper.advance(by: .seconds(1))
    #expect(try await account.value.stage == .active)
    #expect(try accounts().map(\.stage) == [.active])
    #expect(try world.vault.auditLines(newest: 9).map(\.entry.kind) == [.enrolled])
  }

  @Test(arguments: [true, false]) func `Leaves the pins of others there as they are until AM was reached`(
    isRefused: Bool
  ) async throws {
    func pins() throws -> [String] { try PingAM.pins(of: try #require(try world.vault.servers().first)) }
    let pinned = ServerTrust(pins: ["the right one"])
    _ = try await world.enrolment().enrol(world.am.registrationURI("ann"), name: nil, trust: pinned)
    #expect(try pins() == ["the right one"])
    if isRefused { world.weather.withLock { $0 = [.status(400)] } }
    var dropping = trust
    dropping.dropsPins = true
    do {
      _ = try await world.enrolment().enrol(world.am.registrationURI("bob"), name: nil, trust: dropping)
    } catch is TokenServerFault {}
    #expect(try accounts().count == (isRefused ? 1 : 2))
    #expect(try pins() == (isRefused ? ["the right one"] : []))
    let lines = try world.vault.auditLines(newest: 9).map(\.entry.kind)
    #expect(lines.contains(.pinsDropped) == !isRefused)
  }

  @Test("An enrollment without a pin keeps the pins of others") func noPinKeepsPins() async throws {
    let pinned = ServerTrust(pins: ["the right one"])
    _ = try await world.enrolment().enrol(world.am.registrationURI("ann"), name: nil, trust: pinned)
    _ = try await world.enrolment().enrol(world.am.registrationURI("bob"), name: nil, trust: trust)
    #expect(try accounts().count == 2)
    #expect(try PingAM.pins(of: try #require(try world.vault.servers().first)) == ["the right one"])
  }

  @Test(arguments: [500, 504]) func `Is tried again after what AM or a balancer could not do`(status: Int) async throws
  {
    world.weather.withLock { $0 = [.status(status)] }
    let uri = world.am.registrationURI("ann")
    let account = Task { [world, trust] in try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    await world.timekeeper.untilAsleep()
    world.timekeeper.advance(by: .seconds(1))
    #expect(try await account.value.stage == .active)
    #expect(world.requests.withLock { $0.count } == 2 && Set(world.requests.withLock { $0.map(\.body) }).count == 1)
  }

  @Test(arguments: [
    (400, "AM refused the registration"), (404, "not set up in this realm"),
    (501, "does not support this request"),
    (401, "requires a login"), (403, "requires a login"),
  ])
  func `That AM refuses leaves nothing`(status: Int, why: String) async throws {
    world.weather.withLock { $0 = [.status(status)] }
    await #expect {
      try await world.enrolment().enrol(world.am.registrationURI("ann"), name: nil, trust: trust)
    } throws: {
      "\($0)".contains(why)
    }
    #expect(try accounts().isEmpty)
  }

  @Test func `With a spent code is refused`() async throws {
    let uri = world.am.registrationURI("ann")
    _ = try await world.enrolment().enrol(uri, name: nil, trust: trust)
    try world.vault.wipe(account: AccountID("ann"), AuditEntry(.removed, wallClockMilliseconds: 0))
    await #expect(throws: TokenServerFault.self) { try await world.enrolment().enrol(uri, name: nil, trust: trust) }
    #expect(try accounts().isEmpty)
  }

  @Test func `Twice for one user, or under a name that is taken, is refused before a request to AM`() async throws {
    try await world.enrolled()
    world.requests.withLock { $0 = [] }
    await #expect(throws: TokenServerFault.alreadyEnrolled("it is the account \"ann\"")) {
      try await world.enrolment().enrol(world.am.registrationURI("ann"), name: "other", trust: trust)
    }
    await #expect(throws: TokenServerFault.alreadyEnrolled("there is an account \"ann\" already; choose another name"))
    {
      try await world.enrolment().enrol(world.am.registrationURI("bob"), name: "ann", trust: trust)
    }
    #expect(world.requests.withLock { $0.isEmpty })
  }

  @Test func `Keeps the name of an account that must be enrolled again, with any outcome`() async throws {
    try await world.enrolled()
    let entry = AuditEntry(.disenrolled, wallClockMilliseconds: 0)
    try world.vault.dropKeys(of: AccountID("ann"), entry)
    world.weather.withLock { $0 = [.status(400)] }
    await #expect(throws: TokenServerFault.self) {
      try await world.enrolment().enrol(world.am.registrationURI("ann"), name: nil, trust: trust)
    }
    #expect(try accounts().map(\.stage) == [.mustEnrolAgain])
    #expect(
      try await world.enrolment().enrol(world.am.registrationURI("ann"), name: nil, trust: trust).id.text == "ann")
    #expect(try accounts().map(\.stage) == [.active])
  }

  @Test func `Over plain http is refused`() async throws {
    let am = TestAM(base: "http://am.example/am", realm: "") { 0 }
    await #expect { try await world.enrolment().enrol(am.registrationURI("ann"), name: nil, trust: trust) } throws: {
      "\($0)".contains("not https")
    }
    #expect(try accounts().isEmpty)
  }
}
