// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import MobileAuth
import Secrets

extension RegistrationURI {
  /// The profile of an account with only one-time passwords.
  package var oneTimePasswordProfile: String { "\(issuer):\(accountName)" }

  /// The profile of an account with a push mechanism.
  package var pushProfile: String { "\(issuer): \(accountName)".sanitized }

  /// The stored accounts with the same issuer and account name, under any account ID and any server: accounts with a
  /// push mechanism that have keys, and accounts with only one-time passwords.
  package func namesakes(in registry: any EnrollmentRegistry) throws(StateStoreError) -> [AccountRecord] {
    try registry.accounts().filter { account in
      account.profile == oneTimePasswordProfile || account.profile == pushProfile && account.secrets.count > 0
    }
  }
}
