// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Cryptography
import MobileAuth
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `Registering with a combined code` {
  private let world: AMWorld
  private let trust = ServerTrust()

  init() throws { world = try AMWorld() }

  private func accounts() throws -> [AccountRecord] { try world.vault.accounts() }

  private static let oath = "secret=MFRGGZDF&period=30"

  private var oathDesk: OATHDesk {
    OATHDesk { [world] oath, pin, known, account in
      #expect(account.stage == .enrolling && world.requests.withLock { $0.isEmpty }, "AM has not heard of it yet")
      try world.oathDesk.keep(oath, pin, known, account)
    } drop: { [world] account in
      try world.oathDesk.drop(account)
    }
  }

  private func having() throws -> [AccountID] { try world.vault.oneTimePasswords().keys.sorted { $0.text < $1.text } }

  @Test func `Stores the one-time password credential, and deletes it when the registration is refused`() async throws {
    let enrolment = world.enrolment(oathDesk: oathDesk)
    world.weather.withLock { $0 = [.status(400)] }
    await #expect(throws: TokenServerFault.self) {
      try await enrolment.enrol(world.am.registrationURI("ann", oath: Self.oath), name: nil, trust: trust)
    }
    #expect(try accounts().isEmpty && having().isEmpty)
    world.requests.withLock { $0 = [] }
    _ = try await enrolment.enrol(world.am.registrationURI("ann", oath: Self.oath), name: "desk", trust: trust)
    #expect(try having() == [AccountID("desk")])
    await #expect(throws: TokenServerFault.self) {
      try await enrolment.enrol("otpauth://totp/Example:ann?secret=MFRGGZDF", name: nil, trust: trust)
    }
  }

  @Test func `Keeps it where AM's answer was lost, until the first message makes the account active`() async throws {
    world.weather.withLock { $0 = [.answerIsLost] }
    let uri = world.am.registrationURI("ann", oath: Self.oath)
    let enrolment = world.enrolment(oathDesk: oathDesk)
    let account = Task { [trust] in try await enrolment.enrol(uri, name: nil, trust: trust) }
    await world.timekeeper.untilAsleep()
    world.timekeeper.advance(by: .seconds(1))
    await #expect(throws: TokenServerFault.self) { try await account.value }
    // The same URI finds the stored credential.
    world.requests.withLock { $0 = [] }
    await #expect(throws: TokenServerFault.self) { try await enrolment.enrol(uri, name: nil, trust: trust) }
    #expect(try having() == [AccountID("ann")])
    _ = world.am.finishRegistration(of: "ann")
    try world.ingress.accept(try #require(world.am.send("ann")).envelope)
    #expect(try accounts().map(\.stage) == [.active])
    let verdict = try world.vault.nextOneTimePassword(of: AccountID("ann"), clock: world.timekeeper, notBefore: 0)
    guard case .code = verdict else {
      Issue.record("no code: \(verdict)")
      return
    }
  }

  // MARK: Policies

  private static let wantsPIN = #"{"biometricAvailable": { }}"#

  @Test func `Chooses a PIN where a policy requires user verification, and is refused without a keypad`() async throws {
    let account = try await world.enrolled(pin: pin("13579"), policies: Self.wantsPIN)
    #expect(try PingAM.pinLength(of: account) == 5 && world.judge.counts(of: account.id) != nil)
    await #expect { try await world.enrolled("bob", policies: Self.wantsPIN) } throws: {
      "\($0)".contains("biometricAvailable") && "\($0)".contains("(6100005)")
    }
  }

  /// Fails if the user has to choose a PIN and can then only deny requests that require a fingerprint.
  @Test("A policy that requires user verification is refused if no PIN may replace a fingerprint")
  func noPINForBiometric() async throws {
    let enrolment = world.enrolment(pin: pin("13579"), takesPINForBiometric: false)
    let uri = world.am.registrationURI("ann", policies: Self.wantsPIN)
    await #expect { try await enrolment.enrol(uri, name: nil, trust: trust) } throws: {
      "\($0)".contains("pin_for_biometric") && "\($0)".contains("(6100005)")
    }
    #expect(try accounts().isEmpty && world.choices.withLock { $0 } == 0)
  }

  @Test(arguments: [
    (#"{"deviceTampering": {"score": 0.8}}"#, false), (#"{"deviceTampering": {}}"#, false), (#"[]"#, false),
    ("{", false),
    (#"{"x": 1}"#, false), (#"{"unheardOf": {}}"#, true),
  ])
  func `Of a token that was tampered with, or with policies that are none, is refused`(json: String, isFine: Bool)
    async throws
  {
    world.isTamperedWith.withLock { $0 = true }
    do {
      try await world.enrolled(policies: json)
      #expect(isFine)
    } catch is TokenServerFault { #expect(!isFine) }
    #expect(try accounts().count == (isFine ? 1 : 0))
  }

  // MARK: Duplicates

  /// An account with only one-time passwords has no server.
  @Test(arguments: [("Example:ann", false), ("Example:anna", true), ("Other:ann", true)])
  func `Is refused where the account has one-time passwords already, under any name`(
    profile: String, isFine: Bool
  ) async throws {
    let server = TokenServerRecord(
      id: TokenServerID("oath"), kind: OATHCredential.kind, url: "otpauth:", secrets: SecretBytes(copying: []))
    try world.vault.put(server)
    try world.vault.put(
      AccountRecord(
        id: AccountID("alone"), server: server.id, profile: profile, stage: .active, secrets: SecretBytes(copying: [])))
    let uri = world.am.registrationURI("ann", oath: Self.oath)
    if isFine {
      #expect(try await world.enrolment().enrol(uri, name: "desk", trust: trust).stage == .active)
      return
    }
    await #expect(throws: TokenServerFault.alreadyEnrolled("it is the account \"alone\"")) {
      try await world.enrolment().enrol(uri, name: "desk", trust: trust)
    }
    #expect(try accounts().map(\.id.text) == ["alone"])
    #expect(world.requests.withLock { $0.isEmpty })
    let pushAlone = world.am.registrationURI("ann")
    #expect(try await world.enrolment().enrol(pushAlone, name: nil, trust: trust).stage == .active)
  }

  @Test func `Is refused where the account is at another realm already`() async throws {
    try await world.enrolled()
    let beta = TestAM(base: "https://am.example:8443/am", realm: "beta") { 1_795_253_339_000 }
    await #expect(throws: TokenServerFault.alreadyEnrolled("it is the account \"ann\"")) {
      try await world.enrolment()
        .enrol(beta.registrationURI("ann", oath: Self.oath), name: "second", trust: trust)
    }
    #expect(try accounts().count == 1 && world.vault.servers().count == 1)
  }

  @Test(arguments: [("ann", ["desk"]), ("anna", [])] as [(String, [String])])
  func `Makes an account that one-time passwords alone are a duplicate of`(user: String, found: [String]) async throws {
    let uri = world.am.registrationURI("ann", oath: Self.oath)
    _ = try await world.enrolment().enrol(uri, name: "desk", trust: trust)
    let alone = try RegistrationURI("otpauth://hotp/Example:\(user)?secret=MFRGGZDF")
    #expect(try alone.namesakes(in: world.vault).map(\.id.text) == found)
  }
}
