// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Testing

@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct StoredMechanismTests {
  /// Without the check, a change of the PIN traps.
  @Test("An invalid stored PIN length is reported as damage", arguments: [-1, 0, 4, 33, .max])
  func impossiblePINLength(length: Int) throws {
    #expect(throws: StateStoreError.corrupt(.keys(of: AccountID("ann")))) { try PingAM.pinLength(of: record(length)) }
  }

  @Test("A valid stored PIN length is read", arguments: [nil, 5, 32])
  func possiblePINLength(length: Int?) throws { #expect(try PingAM.pinLength(of: record(length)) == length) }

  private func record(_ pinLength: Int?) -> AccountRecord {
    var facts = Mechanism.Metadata(
      uid: "u", issuer: "AM", accountName: "ann", registrationURL: "https://am.example/r",
      authenticationURL: "https://am.example/a", deviceToken: "mailbox")
    facts.pinLength = pinLength
    let mechanism = Mechanism(
      facts: facts, secret: SharedSecret(bytes: SecretBytes(copying: [UInt8](repeating: 7, count: 32))))
    return AccountRecord(
      id: AccountID("ann"), server: TokenServerID("am"), profile: "ann", stage: .active, secrets: mechanism.encoded)
  }
}
