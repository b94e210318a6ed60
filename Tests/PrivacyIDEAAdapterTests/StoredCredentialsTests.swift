// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Testing

@testable import PrivacyIDEAAdapter

@Suite(.timeLimit(.minutes(5))) struct StoredCredentialsTests {
  /// Without the check, a change of the PIN traps.
  @Test(
    "An invalid stored PIN length is reported as damage",
    arguments: ["0", "4", "33", "-6", "9223372036854775807", "9223372036854775808", "six"])
  func impossiblePINLength(text: String) throws {
    #expect(throws: StateStoreError.corrupt(.keys(of: AccountID("ann")))) {
      try PushCredentials(record(pinLength: text))
    }
  }

  @Test("A valid stored PIN length is read", arguments: [("", nil), ("5", 5), ("32", 32)] as [(String, Int?)])
  func possiblePINLength(text: String, length: Int?) throws {
    #expect(try PushCredentials(record(pinLength: text)).pinLength == length)
  }

  private func record(pinLength: String) -> AccountRecord {
    let parts = ["1", pinLength, "", "", "", "", "", ""].map { SecretBytes(copying: Array($0.utf8)) }
    return AccountRecord(
      id: AccountID("ann"), server: TokenServerID("s"), profile: "P", stage: .active, secrets: .joining(parts))
  }
}
