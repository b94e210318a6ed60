// SPDX-License-Identifier: Apache-2.0
@testable import Vault

/// Loads the device secret from the systemd credential in `directory`.
func readDeviceSecret(from directory: String) {
  _ = try? DeviceSecret.load(stateDirectory: "/nonexistent/state", credentialsDirectory: directory).source
}
