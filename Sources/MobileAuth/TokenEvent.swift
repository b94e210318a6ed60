/// What the service tells its log: one line each, never a secret.
public enum TokenEvent: Sendable, Equatable {
  case connected(TokenServerID)
  case disconnected(TokenServerID, String)
  /// The server said something that stops the token from talking to it until a person has looked.
  case stopped(TokenServerID, TokenServerFault)
  case retrying(TransactionID, TokenServerFault)
  case audited(AuditEntry)
  case custodyFailed(CustodyFault)
  /// So many requests expired before they were announced.
  case expiredUnannounced(Int)
  /// What the judge of the account's PIN said last.
  case counted(AccountID, FailureCounts)
  /// The token lost it while somebody used it: by the last wrong PIN, or because the server no longer has it.
  case accountLost(AccountID)
  /// Something about one account that a person should look into, although others of the server work.
  case trouble(AccountID, String)
  /// Something that was brought to this token and is for nobody here, or cannot be believed.
  case dropped(String)
  /// The login is finished by typing this into the portal.
  case code(AccountID, PortalCode)
  /// The account's messages are brought somewhere else from now on.
  case mailboxMoved(AccountID)
  /// Accounts or servers are gone from the vault: whoever composed the service must read it again.
  case rosterChanged
}

extension TokenEvent: CustomStringConvertible {
  public var description: String {
    switch self {
    case .connected(let server): "connected to \(server)"
    case .disconnected(let server, let why): "not connected to \(server): \(why)"
    case .stopped(let server, let fault): "stopped talking to \(server): \(fault)"
    case .retrying(let transaction, let fault): "request \(transaction): trying again: \(fault)"
    case .audited(let entry): entry.description
    case .expiredUnannounced(let count): "\(count) requests expired unasked while others were at the panel"
    case .counted(let account, let counts):
      "account \(account): \(counts.previous) wrong PINs, \(counts)"
    case .accountLost(let account): "account \(account): gone from this token; it must be enrolled again"
    case .trouble(let account, let what): "account \(account): \(what)"
    case .dropped(let what): "dropped: \(what)"
    // Logs outlive the login, and are read by others.
    case .code(let account, _): "account \(account): a code has to be typed into the portal"
    case .custodyFailed(let fault): "nothing can be answered: \(fault)"
    case .mailboxMoved(let account): "account \(account): its messages are brought to its new mailbox"
    case .rosterChanged: "the accounts have changed"
    }
  }
}

extension AuditEntry: CustomStringConvertible {
  public var description: String {
    let subject = [transaction.map { "request \($0)" }, account.map { "account \($0)" }].compactMap(\.self)
    return ([kind.rawValue] + subject).joined(separator: " ") + (detail.isEmpty ? "" : ": \(detail)")
  }
}
