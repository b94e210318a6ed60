public import Secrets

/// Names one token server that this token is registered with.
public struct TokenServerID: Hashable, Sendable, CustomStringConvertible {
  public let text: String
  public init(_ text: String) { self.text = text }
  public var description: String { text }
}

/// Names one account: one person at one token server. Unique on this token, short enough to type.
public struct AccountID: Hashable, Sendable, CustomStringConvertible {
  public let text: String
  public init(_ text: String) { self.text = text }
  public var description: String { text }
}

/// How far an account's enrolment has come.
public enum EnrolmentStage: String, Sendable {
  /// Keys exist, the server may or may not know them; `enroll` with the same code goes on from here.
  case enrolling
  case active
  /// The server dropped the keys or the push enrolment; nothing can be answered until the person enrols again.
  case mustEnrolAgain = "must-enrol-again"
}

/// What the token keeps about one token server. `secrets` is the adapter's own encoding and never leaves the vault
/// unsealed.
public struct TokenServerRecord: Sendable {
  public var id: TokenServerID
  /// Which adapter speaks to it: "reference".
  public var kind: String
  /// `https://host[:port]`.
  public var url: String
  public var secrets: SecretBytes

  public init(id: TokenServerID, kind: String, url: String, secrets: SecretBytes) {
    self.id = id
    self.kind = kind
    self.url = url
    self.secrets = secrets
  }
}

/// What the token keeps about one account.
public struct AccountRecord: Sendable {
  public var id: AccountID
  public var server: TokenServerID
  /// The server's name for the person on this device.
  public var profile: String
  public var stage: EnrolmentStage
  public var secrets: SecretBytes

  public init(id: AccountID, server: TokenServerID, profile: String, stage: EnrolmentStage, secrets: SecretBytes) {
    self.id = id
    self.server = server
    self.profile = profile
    self.stage = stage
    self.secrets = secrets
  }

  /// The same account with other secrets.
  public func with(_ secrets: SecretBytes) -> AccountRecord {
    var record = self
    record.secrets = secrets
    return record
  }
}

/// Where enrolments are kept. Every call is durable when it returns, so a cut between two steps of an enrolment loses
/// nothing that the server may already know.
public protocol EnrolmentRegistry: Sendable {
  func servers() throws(CustodyFault) -> [TokenServerRecord]
  func accounts() throws(CustodyFault) -> [AccountRecord]
  /// Inserts or replaces.
  func put(_ server: TokenServerRecord) throws(CustodyFault)
  /// Inserts or replaces; the entry goes into the audit chain in the same step.
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(CustodyFault)
}

extension EnrolmentRegistry {
  public func accounts(atServersOf kind: String) throws(CustodyFault) -> [AccountRecord] {
    let servers = Set(try servers().filter { $0.kind == kind }.map(\.id))
    return try accounts().filter { servers.contains($0.server) }
  }
}
