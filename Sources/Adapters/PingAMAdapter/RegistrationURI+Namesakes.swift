// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import ServerBackends

extension OATHCredential {
  /// The `kind` of `TokenServerRecord` for accounts with only one-time passwords.
  package static let kind = "oath"

  /// The profile of an account with only this credential.
  package var profile: String { Self.profile(issuer, accountName) }

  static func profile(_ issuer: String, _ accountName: String) -> String { "\(issuer):\(accountName)" }
}

extension RegistrationURI {
  /// The stored accounts with the same issuer and account name, under any account ID and any server: accounts at AM
  /// that have keys, and accounts with only one-time passwords.
  package func namesakes(in registry: any EnrollmentRegistry) throws(StateStoreError) -> [AccountRecord] {
    var kinds: [TokenServerID: String] = [:]
    for server in try registry.servers() { kinds[server.id] = server.kind }
    var namesakes: [AccountRecord] = []
    for account in try registry.accounts() {
      let isNamesake =
        switch kinds[account.server] ?? "" {
        case PingAM.kind: try isMechanism(of: account)
        case OATHCredential.kind: account.profile == OATHCredential.profile(issuer, accountName)
        default: false
        }
      if isNamesake { namesakes.append(account) }
    }
    return namesakes
  }

  private func isMechanism(of account: AccountRecord) throws(StateStoreError) -> Bool {
    guard let facts = try Mechanism(account)?.metadata else { return false }
    return facts.issuer == issuer && facts.accountName == accountName
  }
}
