// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("A PIN before one-time passwords", .timeLimit(.minutes(5))) struct PINBeforeCodesTests {
  private let fixture: PingAMFixture
  private let trust = ServerTrust()
  private let ann = AccountID("ann")

  init() throws { fixture = try PingAMFixture() }

  private static let oath = "secret=MFRGGZDF&period=30"
  private static let wantsPIN = #"{"biometricAvailable": { }}"#

  private func uri(_ oath: String? = Self.oath, policies: String? = nil) -> String {
    fixture.am.registrationURI("ann", oath: oath, policies: policies)
  }

  private var choices: Int { fixture.choices.withLock { $0 } }

  /// Nil if there are no one-time passwords.
  private func isUnderPIN() throws -> Bool? { try fixture.vault.oneTimePasswords()[ann]?.isUnderPIN }

  /// Nil if the PIN is wrong.
  private func secret(behind digits: String) throws -> String? {
    guard case .unlocked(let secret) = try fixture.vault.unlock(ann, with: pin(digits), in: fixture.environment) else {
      return nil
    }
    return secret.withExposedSecret { String(decoding: $0, as: UTF8.self) }
  }

  /// A power loss directly after AM has accepted the registration.
  private func cut(_ uri: String, pin: PIN? = nil, codesWantPIN: Bool = false) async {
    await #expect(throws: StateStoreError.self) {
      try await fixture.enrollment(registry: CrashingRegistry(fixture.vault), pin: pin, codesWantPIN: codesWantPIN)
        .enroll(uri, name: nil, trust: trust)
    }
  }

  @Test("Is chosen once, also where AM's answer was lost, and is the PIN of pushes")
  func isChosenOnceAlsoWhereAMsAnswerWasLostAndIsThePINOfPushes() async throws {
    let uri = uri(policies: Self.wantsPIN)
    await cut(uri, pin: pin("13579"), codesWantPIN: true)
    for codesWantPIN in [true, false] {
      await #expect(throws: TokenServerError.self) {
        try await fixture.enrollment(pin: pin("24680"), codesWantPIN: codesWantPIN).enroll(uri, name: nil, trust: trust)
      }
    }
    #expect(try choices == 1 && isUnderPIN() == true)
    _ = fixture.am.finishRegistration(of: "ann")
    try fixture.deliver()
    let account = try fixture.vault.account(ann)
    #expect(account.stage == .active && account.pin?.length == 5)
    let verdict = try fixture.vault.nextOneTimePassword(of: ann, in: fixture.environment, notBefore: 0)
    #expect(verdict == .pinWanted)
    #expect(try secret(behind: "13579") == "abcde")
  }

  @Test("Is asked for again after a power loss before it protected the secret")
  func isAskedForAgainAfterAPowerLossBeforeItProtectedTheSecret() async throws {
    let uri = uri()
    let secretStore = OTPSecretStore(
      keep: { _, _, _, _ in throw StateStoreError.io(call: "write", reason: "the power is gone") }, drop: { _ in })
    await #expect(throws: StateStoreError.self) {
      try await fixture.enrollment(pin: pin("24680"), codesWantPIN: true, otpSecretStore: secretStore)
        .enroll(uri, name: nil, trust: trust)
    }
    #expect(try fixture.vault.account(ann).pin == nil)
    // The PIN was requested with this code.
    let account = try await fixture.enrollment(pin: pin("13579")).enroll(uri, name: nil, trust: trust)
    #expect(account.stage == .active && account.pin?.length == 5)
    #expect(try choices == 2 && isUnderPIN() == true && secret(behind: "13579") == "abcde")
  }

  @Test("May be requested when the same code resumes") func mayBeRequestedWhenTheSameCodeResumes() async throws {
    let uri = uri()
    await cut(uri)
    #expect(try choices == 0 && isUnderPIN() == false)
    await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment(pin: pin("13579"), codesWantPIN: true).enroll(uri, name: nil, trust: trust)
    }
    #expect(try choices == 1 && isUnderPIN() == true && secret(behind: "13579") == "abcde")
  }

  /// AM may have stored the registration of the first code, but no message can confirm it after the second has replaced
  /// it.
  @Test("Goes with the code that it was chosen for, as that code's one-time passwords do", arguments: [false, true])
  func goesWithTheCodeThatItWasChosenForAsThatCodesOneTimePasswordsDo(isCombined: Bool) async throws {
    await cut(uri(), pin: pin("24680"), codesWantPIN: true)
    #expect(try isUnderPIN() == true)
    let second = uri(isCombined ? "secret=GEZDGNBV&period=30" : nil)
    let account = try await fixture.enrollment(pin: pin("13579")).enroll(second, name: nil, trust: trust)
    #expect(account.stage == .active)
    guard isCombined else {
      #expect(try choices == 1 && isUnderPIN() == nil && account.pin?.length == nil)
      #expect(try fixture.vault.pinStatus(of: ann, in: fixture.environment) == nil)
      return
    }
    // A requested PIN stays required with the second code.
    #expect(try choices == 2 && isUnderPIN() == true && account.pin?.length == 5)
    #expect(try secret(behind: "13579") == "12345")
  }

  @Test("Is refused without a keypad") func isRefusedWithoutAKeypad() async throws {
    await #expect(throws: PanelDialog.EntryError.self) {
      try await fixture.enrollment(codesWantPIN: true).enroll(uri(), name: nil, trust: trust)
    }
    #expect(try fixture.vault.accounts().isEmpty && fixture.vault.servers().isEmpty)
    #expect(fixture.requests.withLock { $0.isEmpty })
  }

  @Test("That an earlier code had is refused too, and that code's account stays")
  func thatAnEarlierCodeHadIsRefusedTooAndThatCodesAccountStays() async throws {
    await cut(uri(), pin: pin("24680"), codesWantPIN: true)
    let kept = try fixture.vault.account(ann)
    await #expect(throws: PanelDialog.EntryError.self) {
      try await fixture.enrollment().enroll(uri(), name: nil, trust: trust)
    }
    #expect(try fixture.vault.account(ann).isSame(as: kept))
  }
}
