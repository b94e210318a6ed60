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

/// PINs of push tokens: chosen at enrollment or later, and kept by the next one.
@Suite("Enrolling with a PIN", .timeLimit(.minutes(5))) struct EnrollmentPINTests {
  private let fixture = EnrollmentFixture()
  private let trust = ServerTrust()

  @Test("A token that must be unlocked gets its PIN before the request to the server")
  func tokenThatMustBeUnlockedGetsItsPINBeforeTheRequestToTheServer() async throws {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = fixture.server.prepare("PIPU1", more: "&pin=True&app_force_unlock=pin")
    await #expect(throws: TokenServerError.self) { try await fixture.enrollment().enroll(uri, name: nil, trust: trust) }
    _ = try await fixture.enrollment(pin: pin).enroll(uri, name: nil, trust: trust)
    let credentials = try #require(try fixture.credentials("PIPU1"))
    #expect(credentials.active?.wantsPIN == true && credentials.pinLength == 5)
    #expect(fixture.keptPINs.withLock { $0 } == [AccountID("PIPU1"): pin])
  }

  /// The PIN prompt was canceled, or a power loss occurred.
  @Test("A PIN that was not chosen is asked for by the next try") func pinThatWasNotChosenIsAskedForByTheNextTry()
    async throws
  {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = fixture.server.prepare("PIPU1", more: "&pin=True&app_force_unlock=pin")
    await #expect(throws: CancellationError.self) {
      try await fixture.enrollment(
        prompter: PINPrompter {
          throw CancellationError()
        } keep: { _, _ in
        }
      ).enroll(uri, name: nil, trust: trust)
    }
    #expect(try fixture.credentials("PIPU1")?.next != nil)
    let account = try await fixture.enrollment(pin: pin).enroll(uri, name: nil, trust: trust)
    #expect(account.pin == PINMetadata(.token, length: 5))
    #expect(fixture.keptPINs.withLock { $0 } == [AccountID("PIPU1"): pin])
  }

  /// Fails if the time is compared only when an enrollment is resumed.
  @Test("An enrollment whose time ends while the PIN is chosen is over") func timeEndsWhileThePINIsChosen()
    async throws
  {
    let prompter = PINPrompter { [fixture] in
      fixture.clock.advance(by: .seconds(600))
      return PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    } keep: { _, _ in
    }
    let uri = fixture.server.prepare("PIPU1", more: "&pin=True")
    await #expect(throws: TokenServerError.refused("the enrollment URL has expired; ask for a new one")) {
      try await fixture.enrollment(prompter: prompter).enroll(uri, name: nil, trust: trust)
    }
    #expect(try fixture.registry.accounts().isEmpty)
    #expect(fixture.server.state.withLock { $0.credentials["PIPU1"] != nil }, "the server was not asked")
  }

  @Test("A PIN that the user chose stays required with new keys") func pinThatTheUserChoseStaysRequiredWithNewKeys()
    async throws
  {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = fixture.server.prepare("PIPU1")
    await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment { $0.asksForPIN = true }.enroll(uri, name: nil, trust: trust)
    }
    _ = try await fixture.enrollment(pin: pin) { $0.asksForPIN = true }.enroll(uri, name: nil, trust: trust)
    #expect(fixture.keptPINs.withLock { $0 } == [AccountID("PIPU1"): pin])
    let again = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    let credentials = try PushCredentials(again)
    #expect(credentials.active?.wantsPIN == true && credentials.pinLength == 5)
    #expect(try await fixture.isUsable("PIPU1"))
  }

  /// During a new enrollment, another command sets the account's first PIN.
  private func choosePIN(of fixture: EnrollmentFixture) throws {
    try fixture.registry.update(AccountID("PIPU1")) { account in
      var account = account
      account.pin = PINMetadata(.token, length: 6)
      return account
    }
  }

  @Test("A PIN that is chosen meanwhile is kept") func pinThatIsChosenMeanwhileIsKept() async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    let prompter = PINPrompter {
      try choosePIN(of: fixture)
      return PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    } keep: { account, pin in
      fixture.keptPINs.withLock { $0[account] = pin }
    }
    _ = try await fixture.enrollment(prompter: prompter) { $0.asksForPIN = true }
      .enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    let credentials = try #require(try fixture.credentials("PIPU1"))
    #expect(fixture.keptPINs.withLock { $0 }.isEmpty && credentials.pinLength == 6)
    #expect(credentials.active?.wantsPIN == true)
  }

  @Test("A PIN that is chosen during the request to the server stays required")
  func pinThatIsChosenDuringTheRequestToTheServerStaysRequired() async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    let again = PushEnrollment(
      registry: fixture.registry, in: fixture.environment, settings: fixture.settings, pinPrompter: nil,
      progress: { line in if line.hasPrefix("enrolling") { try? choosePIN(of: fixture) } },
      makeHTTPTransport: { _ in fixture.http })
    _ = try await again.enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    let credentials = try #require(try fixture.credentials("PIPU1"))
    #expect(credentials.pinLength == 6 && credentials.active?.wantsPIN == true)
  }

  @Test("An account gets a first PIN later") func accountGetsAFirstPINLater() async throws {
    let account = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: trust)
    #expect(try account.pin == nil && PushCredentials(account).active?.wantsPIN == false)
    try choosePIN(of: fixture)
    let credentials = try #require(try fixture.credentials("PIPU1"))
    #expect(credentials.active?.wantsPIN == true && credentials.pinLength == 6)
  }

  @Test("A required fingerprint is refused, unless a PIN may replace it")
  func requiredFingerprintIsRefusedUnlessPINMayReplaceIt() async throws {
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    let uri = fixture.server.prepare("PIPU1", more: "&app_force_unlock=biometric")
    await #expect(throws: TokenServerError.self) {
      try await fixture.enrollment(pin: pin).enroll(uri, name: nil, trust: trust)
    }
    let account = try await fixture.enrollment(pin: pin) { $0.takesPINForBiometric = true }
      .enroll(uri, name: nil, trust: trust)
    #expect(try PushCredentials(account).active?.wantsPIN == true && PushCredentials(account).wantsBiometric)
  }

  /// A board with an unset clock, and boards that are 90 s off.
}
