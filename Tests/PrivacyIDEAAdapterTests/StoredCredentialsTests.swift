// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
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
      try PushCredentials(former: record(pinLength: text))
    }
  }

  /// A PIN that is required and does not exist: without the check, it would no longer be required.
  @Test("A former record that requires a PIN without a length is damage") func requiredPINWithoutLength() {
    let parts = SecretBytes.joining(["1", "", "", "", "pin", "", "", ""])
    let record = AccountRecord(
      id: AccountID("ann"), server: TokenServerID("s"), profile: "P", stage: .active, secrets: parts)
    #expect(throws: StateStoreError.corrupt(.keys(of: AccountID("ann")))) { try PushCredentials(former: record) }
  }

  @Test("A valid stored PIN length is read", arguments: [("", nil), ("5", 5), ("32", 32)] as [(String, Int?)])
  func possiblePINLength(text: String, length: Int?) throws {
    #expect(try PushCredentials(former: record(pinLength: text)).pinLength == length)
  }

  @Test("A former record keeps its keys, its PIN and an open enrollment", arguments: [nil, 6])
  func formerRecord(length: Int?) throws {
    let key = DeviceKey.rsa(PrivacyIDEAFixture.deviceKeys[0])
    func part(_ text: String) -> SecretBytes { SecretBytes(copying: Array(text.utf8)) }
    let server = FakePushServer.signingKey.publicKey.pkcs1
    let former = AccountRecord(
      id: AccountID("ann"), server: TokenServerID("s"), profile: "P", stage: .active,
      secrets: .joining([
        part("1"), part(length.map(String.init) ?? ""), try key.exportedSecret(), SecretBytes(copying: server),
        part(length == nil ? "" : "pin"), try key.exportedSecret(), part("uri"), part("-1"),
      ]))
    let account = try PrivacyIDEABackend.upgraded(former)
    #expect(account.pin == length.map { PINMetadata(.token, length: $0) })
    let credentials = try PushCredentials(account)
    #expect(credentials.active?.wantsPIN == (length != nil) && credentials.active?.server.pkcs1 == server)
    #expect(credentials.next?.uri == "uri" && credentials.next?.giveUpAt == -1)
    let kept = try #require(credentials.active).device
    #expect(try SecretBytes.constantTimeEqual(kept.exportedSecret(), key.exportedSecret()))
    #expect(try credentials.stored(in: account).isSame(as: account))
  }

  private func record(pinLength: String) -> AccountRecord {
    AccountRecord(
      id: AccountID("ann"), server: TokenServerID("s"), profile: "P", stage: .active,
      secrets: .joining(["1", pinLength, "", "", "", "", "", ""]))
  }
}
