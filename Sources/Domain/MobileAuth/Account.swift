// SPDX-License-Identifier: Apache-2.0
public import Secrets

/// The name of a token server at which this token is registered.
public struct TokenServerID: Hashable, Sendable, CustomStringConvertible {
  public let text: String
  public init(_ text: String) { self.text = text }
  public var description: String { text }
}

/// The name of one account: one user at one token server. Unique on this token and short enough to type.
public struct AccountID: Hashable, Sendable, CustomStringConvertible {
  public let text: String
  public init(_ text: String) { self.text = text }
  public var description: String { text }
}

/// The progress of an account's enrollment.
public enum EnrollmentStage: String, Sendable {
  /// The keys exist, but the server may not know them; `enroll` with the same code resumes the enrollment.
  case enrolling
  case active
  /// The server has deleted the keys or the push enrollment. No request can be answered until the user enrolls again.
  /// The raw value is that of stored accounts, whose spelling remains.
  case mustEnrollAgain = "must-enrol-again"

  /// The word in lists of accounts, also in JSON.
  public var text: String { self == .mustEnrollAgain ? "must-enroll-again" : rawValue }
}

/// The stored state of one token server. `secrets` is encoded by the adapter and is stored only encrypted.
public struct TokenServerRecord: Sendable {
  public var id: TokenServerID
  /// The name of the adapter for this server, such as "reference".
  public var kind: String
  /// `https://host[:port]`.
  public var url: String
  /// The registration of this device at the server.
  public var registration: EnrollmentID
  public var secrets: SecretBytes

  public init(
    id: TokenServerID, kind: String, url: String, registration: EnrollmentID, secrets: SecretBytes
  ) {
    self.id = id
    self.kind = kind
    self.url = url
    self.registration = registration
    self.secrets = secrets
  }
}

/// The PIN of an account. Its attempts are counted where it is verified: at the server, or in the state store.
public struct PINMetadata: Sendable, Equatable {
  public enum Verifier: String, Sendable {
    case server, token
  }

  public var verifier: Verifier
  /// The number of digits.
  public var length: Int

  public init(_ verifier: Verifier, length: Int) {
    self.verifier = verifier
    self.length = length
  }
}

/// A lock that the user set.
public struct UserLock: Sendable, Equatable {
  /// The policy that the user named; nil where accounts have none.
  public var policy: String?
  public init(policy: String?) { self.policy = policy }
}

/// Where the server delivers an account's messages.
public struct DeliveryAddress: Sendable, Equatable {
  /// The mailbox that the server has confirmed.
  public var mailbox: String
  /// The mailbox that the server has not confirmed yet; nil if no change is pending.
  public var wanted: String?

  public init(_ mailbox: String, wanted: String? = nil) {
    self.mailbox = mailbox
    self.wanted = wanted
  }
}

/// The stored state of one account.
public struct AccountRecord: Sendable {
  public var id: AccountID
  public var server: TokenServerID
  /// The server's name of the user on this device.
  public var profile: String
  public var stage: EnrollmentStage
  /// The user's name at the server, for display; nil if the server names none.
  public var displayName: String?
  /// Changes when the account is enrolled again.
  public var enrollment: EnrollmentID
  /// Nil for an account without a PIN.
  public var pin: PINMetadata?
  /// Nil unless the user has locked the account.
  public var lock: UserLock?
  /// The policies that the server attached to the account: JSON text as received, not verified.
  public var policies: String?
  /// Nil for an account whose server delivers no messages.
  public var delivery: DeliveryAddress?
  /// The origins (`https://host[:port]`) to which the access token of the logged-in user may be sent; at most
  /// `mostOrigins`.
  public var allowedOrigins: [String] = []
  public static let mostOrigins = 16
  /// The credentials, encoded by the adapter and stored only encrypted.
  public var secrets: SecretBytes

  public init(
    id: AccountID, server: TokenServerID, profile: String, stage: EnrollmentStage,
    enrollment: EnrollmentID, secrets: SecretBytes
  ) {
    self.id = id
    self.server = server
    self.profile = profile
    self.stage = stage
    self.enrollment = enrollment
    self.secrets = secrets
  }

  /// A copy of the account with other secrets.
  public func with(_ secrets: SecretBytes) -> AccountRecord {
    var record = self
    record.secrets = secrets
    return record
  }
}

/// The store of enrollments. Every change is durable when the call returns, so a crash between two steps of an
/// enrollment loses nothing that the server may already know.
public protocol EnrollmentRegistry: Sendable {
  func servers() throws(StateStoreError) -> [TokenServerRecord]
  func accounts() throws(StateStoreError) -> [AccountRecord]
  /// Inserts or replaces the record.
  func put(_ server: TokenServerRecord) throws(StateStoreError)
  /// Inserts or replaces the record and appends the entry to the audit chain, in one transaction.
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(StateStoreError)
}

extension EnrollmentRegistry {
  public func accounts(atServersOf kind: String) throws(StateStoreError) -> [AccountRecord] {
    let servers = Set(try servers().filter { $0.kind == kind }.map(\.id))
    return try accounts().filter { servers.contains($0.server) }
  }
}
