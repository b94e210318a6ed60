// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets

@testable import Vault

/// Loads the device secret from the systemd credential in `directory`.
func readDeviceSecret(from directory: String) {
  _ = try? DeviceSecret.load(stateDirectory: "/nonexistent/state", credentialsDirectory: directory).source
}

/// Decodes the plaintext of an account's record.
func readBox(_ bytes: [UInt8]) {
  let opened = SecretBytes(copying: bytes)
  let (id, server) = (AccountID("ann"), TokenServerID("s"))
  if let fields = SecretFields(encoded: opened) {
    require(SecretBytes.constantTimeEqual(fields.encoded, opened), "fields are written as they were")
  }
  _ = try? TokenServerRecord(id: server, kind: "k", url: "https://s", encodedFields: opened).encodedFields
  guard let account = try? AccountRecord(id: id, server: server, profile: "P", stage: .active, encodedFields: opened),
    let again = try? AccountRecord(
      id: id, server: server, profile: "P", stage: .active, encodedFields: account.fields.encoded)
  else { return }
  require(again.isSame(as: account), "an account survives being written")
}
