// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import OATHAdapter
import Secrets
import ServerBackends
import Testing
import Vault

@testable import TokenDaemon

@Suite("A URI for one-time passwords that requires unlocking", .timeLimit(.minutes(5))) struct RequiredUnlockTests {
  private let fixture: ServiceFixture

  init() throws { fixture = try ServiceFixture() }

  private func enroll(
    _ more: String, hasKeypad: Bool = true, pinForBiometric: Bool? = nil
  ) async throws -> AccountRecord {
    var context = fixture.context
    context.settings.pinForBiometric = pinForBiometric
    context.keyDerivation = Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1)
    var request = EnrollmentRequest("otpauth://totp/E:a?secret=GEZDGNBVGY3TQOJQ&issuer=E\(more)")
    if hasKeypad {
      request.pinChooser = PINChooser { _ in
        PIN(digits: SecretBytes(copying: Array("135790".utf8)))
      } confirm: {
      }
    }
    return try await OATHBackend(context).enroll(request)
  }

  @Test(
    "Gets a PIN before each code",
    arguments: ["&pin=True", "&pin=True&app_force_unlock=pin", "&app_force_unlock=any", "&app_force_unlock=biometric"])
  func requiredPIN(more: String) async throws {
    let account = try await enroll(more, pinForBiometric: true)
    #expect(account.pin == PINMetadata(.token, length: 6))
    #expect(try fixture.vault.oneTimePasswords()[account.id]?.isUnderPIN == true)
  }

  @Test("Gets none if it requires none", arguments: ["", "&pin=False", "&app_force_unlock="])
  func noPIN(more: String) async throws { #expect(try await enroll(more).pin == nil) }

  @Test("Is refused without a keypad, and where a PIN may not replace a fingerprint")
  func refusal() async throws {
    for (more, hasKeypad, pinForBiometric) in [
      ("&pin=True", false, true), ("&app_force_unlock=biometric", true, nil),
      ("&app_force_unlock=biometric", true, false),
    ] as [(String, Bool, Bool?)] {
      await #expect {
        _ = try await enroll(more, hasKeypad: hasKeypad, pinForBiometric: pinForBiometric)
      } throws: {
        ($0 as? BackendError)?.category == .refused
      }
    }
    #expect(try fixture.vault.accounts().isEmpty)
  }
}
