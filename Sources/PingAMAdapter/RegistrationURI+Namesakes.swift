public import MobileAuth

extension OATHCredential {
  /// Kind of `TokenServerRecord`, of accounts that make one-time passwords and nothing else.
  public static let kind = "oath"

  /// The profile of such an account.
  public var profile: String { Self.profile(issuer, accountName) }

  static func profile(_ issuer: String, _ accountName: String) -> String { "\(issuer):\(accountName)" }
}

extension RegistrationURI {
  /// The accounts here of the same issuer and account name, whatever they are called and whichever server they are at:
  /// those of AM that have their keys, and those for one-time passwords alone.
  public func namesakes(in registry: any EnrolmentRegistry) throws(CustodyFault) -> [AccountRecord] {
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

  private func isMechanism(of account: AccountRecord) throws(CustodyFault) -> Bool {
    guard let facts = try Mechanism(account)?.facts else { return false }
    return facts.issuer == issuer && facts.accountName == accountName
  }
}
