// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import MobileAuth
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `A PIN before one-time passwords` {
  private let world: AMWorld
  private let trust = ServerTrust()
  private let ann = AccountID("ann")

  init() throws { world = try AMWorld() }

  private static let oath = "secret=MFRGGZDF&period=30"
  private static let wantsPIN = #"{"biometricAvailable": { }}"#

  private func uri(_ oath: String? = Self.oath, policies: String? = nil) -> String {
    world.am.registrationURI("ann", oath: oath, policies: policies)
  }

  private var choices: Int { world.choices.withLock { $0 } }

  /// Nil if there are no one-time passwords.
  private func isUnderPIN() throws -> Bool? { try world.vault.oneTimePasswords()[ann]?.isUnderPIN }

  /// Nil if the PIN is wrong.
  private func secret(behind digits: String) throws -> String? {
    guard case .unlocked(let secret) = try world.vault.unlock(ann, with: pin(digits), clock: world.timekeeper) else {
      return nil
    }
    return secret.withExposedSecret { String(decoding: $0, as: UTF8.self) }
  }

  /// A power loss directly after AM has accepted the registration.
  private func cut(_ uri: String, pin: PIN? = nil, codesWantPIN: Bool = false) async {
    await #expect(throws: CustodyFault.self) {
      try await world.enrolment(registry: CutRegistry(world.vault), pin: pin, codesWantPIN: codesWantPIN)
        .enrol(uri, name: nil, trust: trust)
    }
  }

  @Test func `Is chosen once, also where AM's answer was lost, and is the PIN of pushes`() async throws {
    let uri = uri(policies: Self.wantsPIN)
    await cut(uri, pin: pin("13579"), codesWantPIN: true)
    for codesWantPIN in [true, false] {
      await #expect(throws: TokenServerFault.self) {
        try await world.enrolment(pin: pin("24680"), codesWantPIN: codesWantPIN).enrol(uri, name: nil, trust: trust)
      }
    }
    #expect(try choices == 1 && isUnderPIN() == true)
    _ = world.am.finishRegistration(of: "ann")
    try world.bring()
    let account = try world.vault.account(ann)
    #expect(try account.stage == .active && PingAM.pinLength(of: account) == 5)
    let verdict = try world.vault.nextOneTimePassword(of: ann, clock: world.timekeeper, notBefore: 0)
    #expect(verdict == .pinWanted)
    #expect(try secret(behind: "13579") == "abcde")
  }

  @Test func `Is asked for again after a power loss before it protected the secret`() async throws {
    let uri = uri()
    let desk = OATHDesk(keep: { _, _, _, _ in throw CustodyFault.storage("the power is gone") }, drop: { _ in })
    await #expect(throws: CustodyFault.self) {
      try await world.enrolment(pin: pin("24680"), codesWantPIN: true, oathDesk: desk)
        .enrol(uri, name: nil, trust: trust)
    }
    #expect(try PingAM.pinLength(of: world.vault.account(ann)) == nil)
    // The PIN was requested with this code.
    let account = try await world.enrolment(pin: pin("13579")).enrol(uri, name: nil, trust: trust)
    #expect(try account.stage == .active && PingAM.pinLength(of: account) == 5)
    #expect(try choices == 2 && isUnderPIN() == true && secret(behind: "13579") == "abcde")
  }

  @Test func `May be requested when the same code resumes`() async throws {
    let uri = uri()
    await cut(uri)
    #expect(try choices == 0 && isUnderPIN() == false)
    await #expect(throws: TokenServerFault.self) {
      try await world.enrolment(pin: pin("13579"), codesWantPIN: true).enrol(uri, name: nil, trust: trust)
    }
    #expect(try choices == 1 && isUnderPIN() == true && secret(behind: "13579") == "abcde")
  }

  /// AM may have stored the registration of the first code, but no message can confirm it after the second has replaced
  /// it.
  @Test(arguments: [false, true])
  func `Goes with the code that it was chosen for, as that code's one-time passwords do`(isCombined: Bool) async throws
  {
    await cut(uri(), pin: pin("24680"), codesWantPIN: true)
    #expect(try isUnderPIN() == true)
    let second = uri(isCombined ? "secret=GEZDGNBV&period=30" : nil)
    let account = try await world.enrolment(pin: pin("13579")).enrol(second, name: nil, trust: trust)
    #expect(account.stage == .active)
    guard isCombined else {
      #expect(try choices == 1 && isUnderPIN() == nil && PingAM.pinLength(of: account) == nil)
      #expect(try world.vault.pinStatus(of: ann, clock: world.timekeeper) == nil)
      return
    }
    // A requested PIN stays required with the second code.
    #expect(try choices == 2 && isUnderPIN() == true && PingAM.pinLength(of: account) == 5)
    #expect(try secret(behind: "13579") == "12345")
  }

  @Test func `Is refused without a keypad`() async throws {
    await #expect(throws: PanelDialogue.Ending.self) {
      try await world.enrolment(codesWantPIN: true).enrol(uri(), name: nil, trust: trust)
    }
    #expect(try world.vault.accounts().isEmpty && world.vault.servers().isEmpty)
    #expect(world.requests.withLock { $0.isEmpty })
  }

  @Test func `That an earlier code had is refused too, and that code's account stays`() async throws {
    await cut(uri(), pin: pin("24680"), codesWantPIN: true)
    let kept = try world.vault.account(ann)
    await #expect(throws: PanelDialogue.Ending.self) {
      try await world.enrolment().enrol(uri(), name: nil, trust: trust)
    }
    #expect(try world.vault.account(ann).isSame(as: kept))
  }
}
