// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

@testable import PingAMAdapter

@Suite("The stored mechanism", .timeLimit(.minutes(5))) struct StoredMechanismTests {
  private static let secret = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
  private static let empty = AccountRecord(
    id: AccountID("ann"), server: TokenServerID("am"), profile: "ann", stage: .active,
    secrets: SecretBytes(copying: []))

  /// As an earlier version wrote it.
  private func former(_ more: String) -> AccountRecord {
    let members =
      #"{"uid":"u","issuer":"AM","accountName":"ann","registrationURL":"https://am.example/r","#
      + #""authenticationURL":"https://am.example/a","deviceToken":"mailbox"\#(more)}"#
    return Self.empty.with(
      .joining([
        SecretBytes(copying: Array("pingam 1".utf8)), SecretBytes(copying: Array(members.utf8)), Self.secret,
      ]))
  }

  /// Without the check, a change of the PIN traps.
  @Test("An invalid PIN length in a former record is reported as damage", arguments: [-1, 0, 4, 33, .max])
  func impossiblePINLength(length: Int) throws {
    #expect(throws: StateStoreError.corrupt(.keys(of: AccountID("ann")))) {
      try PingAMBackend.upgraded(former(#","pinLength":\#(length)"#))
    }
  }

  @Test("A former record keeps its PIN, lock, policies and mailbox") func formerRecord() throws {
    let account = try PingAMBackend.upgraded(
      former(
        #","pinLength":6,"lockedBy":"x","policies":"{}","wantedDeviceToken":"new","codesWantPIN":true,"userID":"id""#
          + #","registration":{"messageID":"m","challenge":[1,2]}"#))
    #expect(account.pin == PINMetadata(.token, length: 6) && account.lock == UserLock(policy: "x"))
    #expect(account.policies == "{}" && account.delivery == DeliveryAddress("mailbox", wanted: "new"))
    let mechanism = try #require(try Mechanism(account))
    #expect(mechanism.metadata.uid == "u" && mechanism.metadata.userID == "id" && mechanism.metadata.cookie == nil)
    #expect(mechanism.metadata.codesWantPIN == true)
    #expect(mechanism.metadata.registration == Mechanism.Registration(messageID: "m", challenge: [1, 2]))
    #expect(SecretBytes.constantTimeEqual(mechanism.secret.bytes, Self.secret))
    #expect(mechanism.stored(in: account).isSame(as: account), "writing does not change the record or its lock")
  }

  @Test("A former record without PIN, lock and policies has none") func plainFormerRecord() throws {
    let account = try PingAMBackend.upgraded(former(""))
    #expect(account.pin == nil && account.lock == nil && account.policies == nil)
    #expect(account.delivery == DeliveryAddress("mailbox"))
  }

  @Test("A former account without keys stays one") func withoutKeys() throws {
    #expect(try PingAMBackend.upgraded(Self.empty).isSame(as: Self.empty))
    #expect(try Mechanism(Self.empty) == nil)
  }
}
