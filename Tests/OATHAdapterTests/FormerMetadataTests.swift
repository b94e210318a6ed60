// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

@testable import OATHAdapter

@Suite(.timeLimit(.minutes(5))) struct FormerMetadataTests {
  private func former(_ text: String) -> AccountRecord {
    AccountRecord(
      id: AccountID("ann"), server: TokenServerID("oath"), profile: "P", stage: .active,
      secrets: SecretBytes(copying: Array(text.utf8)))
  }

  @Test(
    "A former record keeps its PIN, lock and policies",
    arguments: [
      ("", nil, false, nil), ("6", 6, false, nil), ("locked", nil, true, nil), ("5 locked", 5, true, nil),
      ("6 locked\n{\"x\":{}}", 6, true, #"{"x":{}}"#), ("\n{}\n", nil, false, "{}\n"),
    ] as [(String, Int?, Bool, String?)])
  func formerRecord(text: String, length: Int?, isLocked: Bool, policies: String?) throws {
    let account = try OATHBackend.upgraded(former(text))
    #expect(account.pin == length.map { PINMetadata(.token, length: $0) } && account.policies == policies)
    #expect(account.lock == (isLocked ? UserLock(policy: nil) : nil) && account.secrets.count == 0)
  }

  /// Without the check, a change of the PIN traps, or a lock disappears.
  @Test(
    "A former record with an unknown word is damage",
    arguments: ["0", "33", "-6", "9223372036854775807", "x", "locked 6", "6 locked locked", "6 7", "Locked"])
  func damage(text: String) {
    #expect(throws: StateStoreError.corrupt(.keys(of: AccountID("ann")))) { try OATHBackend.upgraded(former(text)) }
  }
}
