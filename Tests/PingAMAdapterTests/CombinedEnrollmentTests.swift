// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import RegistrationURIs
import Secrets
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("Registering with a combined code", .timeLimit(.minutes(5))) struct CombinedEnrollmentTests {
  private let fixture: PingAMFixture
  private let trust = ServerTrust()

  init() throws { fixture = try PingAMFixture() }

  private func accounts() throws -> [AccountRecord] { try fixture.vault.accounts() }

  private static let oath = "secret=MFRGGZDF&period=30"

  private var otpSecretStore: OTPSecretStore {
    OTPSecretStore { [fixture] oath, pin, known, account in
      #expect(account.stage == .enrolling && fixture.requests.withLock { $0.isEmpty }, "AM has not heard of it yet")
      try fixture.otpSecretStore.store(oath, pin, known, account)
    } drop: { [fixture] account in
      try fixture.otpSecretStore.drop(account)
    }
  }

  private func having() throws -> [AccountID] { try fixture.vault.oneTimePasswords().keys.sorted { $0.text < $1.text } }

  @Test("Stores the one-time password credential, and deletes it when the registration is refused")
  func storesTheOneTimePasswordCredentialAndDeletesItWhenTheRegistrationIsRefused() async throws {
    let enrollment = fixture.enrollment(otpSecretStore: otpSecretStore)
    fixture.weather.withLock { $0 = [.status(400)] }
    await #expect(throws: TokenServerError.self) {
      try await enrollment.enroll(fixture.am.registrationURI("ann", oath: Self.oath), name: nil, trust: trust)
    }
    #expect(try accounts().isEmpty && having().isEmpty)
    fixture.requests.withLock { $0 = [] }
    _ = try await enrollment.enroll(fixture.am.registrationURI("ann", oath: Self.oath), name: "desk", trust: trust)
    #expect(try having() == [AccountID("desk")])
    await #expect(throws: TokenServerError.self) {
      try await enrollment.enroll("otpauth://totp/Example:ann?secret=MFRGGZDF", name: nil, trust: trust)
    }
  }

  @Test("Keeps it where AM's answer was lost, until the first message makes the account active")
  func keepsItWhereAMsAnswerWasLostUntilTheFirstMessageMakesTheAccountActive() async throws {
    fixture.weather.withLock { $0 = [.answerIsLost] }
    let uri = fixture.am.registrationURI("ann", oath: Self.oath)
    let enrollment = fixture.enrollment(otpSecretStore: otpSecretStore)
    let account = Task { [trust] in try await enrollment.enroll(uri, name: nil, trust: trust) }
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: .seconds(1))
    await #expect(throws: TokenServerError.self) { try await account.finished() }
    // The same URI finds the stored credential.
    fixture.requests.withLock { $0 = [] }
    await #expect(throws: TokenServerError.self) { try await enrollment.enroll(uri, name: nil, trust: trust) }
    #expect(try having() == [AccountID("ann")])
    _ = fixture.am.finishRegistration(of: "ann")
    try fixture.ingress.accept(try #require(fixture.am.send("ann")).envelope)
    #expect(try accounts().map(\.stage) == [.active])
    let verdict = try fixture.vault.nextOneTimePassword(of: AccountID("ann"), in: fixture.environment, notBefore: 0)
    guard case .code = verdict else {
      Issue.record("no code: \(verdict)")
      return
    }
  }

  // MARK: Policies

  private static let wantsPIN = #"{"biometricAvailable": { }}"#

  @Test("Chooses a PIN where a policy requires user verification, and is refused without a keypad")
  func choosesPINWhereAPolicyRequiresUserVerificationAndIsRefusedWithoutKeypad() async throws {
    let account = try await fixture.enrolled(pin: pin("13579"), policies: Self.wantsPIN)
    #expect(account.pin?.length == 5 && fixture.pinVerifier.counts(of: account.id) != nil)
    await #expect { try await fixture.enrolled("bob", policies: Self.wantsPIN) } throws: {
      "\($0)".contains("biometricAvailable") && "\($0)".contains("(6100005)")
    }
  }

  /// Fails if the user has to choose a PIN and can then only deny requests that require a fingerprint.
  @Test("A policy that requires user verification is refused if no PIN may replace a fingerprint")
  func noPINForBiometric() async throws {
    let enrollment = fixture.enrollment(pin: pin("13579"), takesPINForBiometric: false)
    let uri = fixture.am.registrationURI("ann", policies: Self.wantsPIN)
    await #expect { try await enrollment.enroll(uri, name: nil, trust: trust) } throws: {
      "\($0)".contains("pin_for_biometric") && "\($0)".contains("(6100005)")
    }
    #expect(try accounts().isEmpty && fixture.choices.withLock { $0 } == 0)
  }

  @Test(
    "Of a token that was tampered with, or with policies that are none, is refused",
    arguments: [
      (#"{"deviceTampering": {"score": 0.8}}"#, false), (#"{"deviceTampering": {}}"#, false), (#"[]"#, false),
      ("{", false),
      (#"{"x": 1}"#, false), (#"{"unheardOf": {}}"#, true),
    ])
  func ofATokenThatWasTamperedWithOrWithPoliciesThatAreNoneIsRefused(json: String, isFine: Bool)
    async throws
  {
    fixture.isTamperedWith.withLock { $0 = true }
    do {
      try await fixture.enrolled(policies: json)
      #expect(isFine)
    } catch is TokenServerError { #expect(!isFine) }
    #expect(try accounts().count == (isFine ? 1 : 0))
  }

  // MARK: Duplicates

  /// An account with only one-time passwords has no server.
  @Test(
    "Is refused where the account has one-time passwords already, under any name",
    arguments: [("Example:ann", false), ("Example:anna", true), ("Other:ann", true)])
  func isRefusedWhereTheAccountHasOneTimePasswordsAlreadyUnderAnyName(
    profile: String, isFine: Bool
  ) async throws {
    let server = TokenServerRecord(
      id: TokenServerID("oath"), kind: "oath", url: "otpauth:", secrets: SecretBytes(copying: []))
    try fixture.vault.put(server)
    try fixture.vault.put(
      AccountRecord(
        id: AccountID("alone"), server: server.id, profile: profile, stage: .active, secrets: SecretBytes(copying: [])))
    let uri = fixture.am.registrationURI("ann", oath: Self.oath)
    if isFine {
      #expect(try await fixture.enrollment().enroll(uri, name: "desk", trust: trust).stage == .active)
      return
    }
    await #expect(throws: TokenServerError.alreadyEnrolled("it is the account \"alone\"")) {
      try await fixture.enrollment().enroll(uri, name: "desk", trust: trust)
    }
    #expect(try accounts().map(\.id.text) == ["alone"])
    #expect(fixture.requests.withLock { $0.isEmpty })
    let pushAlone = fixture.am.registrationURI("ann")
    #expect(try await fixture.enrollment().enroll(pushAlone, name: nil, trust: trust).stage == .active)
  }

  @Test("Is refused where the account is at another realm already")
  func isRefusedWhereTheAccountIsAtAnotherRealmAlready() async throws {
    try await fixture.enrolled()
    let beta = TestAM(base: "https://am.example:8443/am", realm: "beta") { 1_795_253_339_000 }
    await #expect(throws: TokenServerError.alreadyEnrolled("it is the account \"ann\"")) {
      try await fixture.enrollment()
        .enroll(beta.registrationURI("ann", oath: Self.oath), name: "second", trust: trust)
    }
    #expect(try accounts().count == 1 && fixture.vault.servers().count == 1)
  }

  @Test(
    "Makes an account that one-time passwords alone are a duplicate of",
    arguments: [("ann", ["desk"]), ("anna", [])] as [(String, [String])])
  func makesAnAccountThatOneTimePasswordsAloneAreADuplicateOf(user: String, found: [String]) async throws {
    let uri = fixture.am.registrationURI("ann", oath: Self.oath)
    _ = try await fixture.enrollment().enroll(uri, name: "desk", trust: trust)
    let alone = try RegistrationURI("otpauth://hotp/Example:\(user)?secret=MFRGGZDF")
    #expect(try alone.namesakes(in: fixture.vault).map(\.id.text) == found)
  }
}
