// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Testing

@testable import OATHAdapter

@Suite(.timeLimit(.minutes(5))) struct OATHMetadataTests {
  /// Without the check, a change of the PIN traps.
  @Test(
    "An invalid stored PIN length is ignored",
    arguments: [
      ("6", 6), ("5 locked", 5), ("0", nil), ("33", nil), ("-6", nil), ("9223372036854775807", nil), ("", nil),
    ]
      as [(String, Int?)])
  func pinLength(text: String, length: Int?) {
    let record = AccountRecord(
      id: AccountID("ann"), server: TokenServerID("oath"), profile: "P", stage: .active,
      secrets: SecretBytes(copying: Array(text.utf8)))
    #expect(OATHMetadata(record).pinLength == length)
  }
}
