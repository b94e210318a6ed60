// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

extension EnrollmentID {
  /// A random one, other than all others.
  package init() { self.init(String(UInt64.random(in: .min ... .max), radix: 16)) }
}

extension TokenServerRecord {
  /// A server with a new registration.
  package init(id: TokenServerID, kind: String, url: String, secrets: SecretBytes) {
    self.init(id: id, kind: kind, url: url, registration: EnrollmentID(), secrets: secrets)
  }
}

extension AccountRecord {
  /// A new enrollment of an account.
  package init(id: AccountID, server: TokenServerID, profile: String, stage: EnrollmentStage, secrets: SecretBytes) {
    self.init(
      id: id, server: server, profile: profile, stage: stage, enrollment: EnrollmentID(), secrets: secrets)
  }
}
