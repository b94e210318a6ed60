// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The name of a token server at which this token is registered.
package struct TokenServerID: Hashable, Sendable, CustomStringConvertible {
  package let text: String
  package init(_ text: String) { self.text = text }
  package var description: String { text }
}

/// The name of one account: one user at one token server. Unique on this token and short enough to type.
package struct AccountID: Hashable, Sendable, CustomStringConvertible {
  package let text: String
  package init(_ text: String) { self.text = text }
  package var description: String { text }
}

/// The progress of an account's enrollment.
package enum EnrollmentStage: String, Sendable {
  /// The keys exist, but the server may not know them; `enroll` with the same code resumes the enrollment.
  case enrolling
  case active
  /// The server has deleted the keys or the push enrollment. No request can be answered until the user enrolls again.
  /// The raw value is that of stored accounts, whose spelling remains.
  case mustEnrollAgain = "must-enrol-again"

  /// The word in lists of accounts, also in JSON.
  package var text: String { self == .mustEnrollAgain ? "must-enroll-again" : rawValue }
}

/// The stored state of one token server. `secrets` is encoded by the adapter and is stored only encrypted.
package struct TokenServerRecord: Sendable {
  package var id: TokenServerID
  /// The name of the adapter for this server, such as "reference".
  package var kind: String
  /// `https://host[:port]`.
  package var url: String
  /// The registration of this device at the server.
  package var registration: EnrollmentID
  package var secrets: SecretBytes

  package init(
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
package struct PINMetadata: Sendable, Equatable {
  package enum Verifier: String, Sendable {
    case server, token
  }

  package var verifier: Verifier
  /// The number of digits.
  package var length: Int

  package init(_ verifier: Verifier, length: Int) {
    self.verifier = verifier
    self.length = length
  }
}

/// A lock that the user set.
package struct UserLock: Sendable, Equatable {
  /// The policy that the user named; nil where accounts have none.
  package var policy: String?
  package init(policy: String?) { self.policy = policy }
}

/// Where the server delivers an account's messages.
package struct DeliveryAddress: Sendable, Equatable {
  /// The mailbox that the server has confirmed.
  package var mailbox: String
  /// The mailbox that the server has not confirmed yet; nil if no change is pending.
  package var wanted: String?

  package init(_ mailbox: String, wanted: String? = nil) {
    self.mailbox = mailbox
    self.wanted = wanted
  }
}

/// The stored state of one account.
package struct AccountRecord: Sendable {
  package var id: AccountID
  package var server: TokenServerID
  /// The server's name of the user on this device.
  package var profile: String
  package var stage: EnrollmentStage
  /// The user's name at the server, for display; nil if the server names none.
  package var displayName: String?
  /// Changes when the account is enrolled again.
  package var enrollment: EnrollmentID
  /// Nil for an account without a PIN.
  package var pin: PINMetadata?
  /// Nil unless the user has locked the account.
  package var lock: UserLock?
  /// The policies that the server attached to the account: JSON text as received, not verified.
  package var policies: String?
  /// Nil for an account whose server delivers no messages.
  package var delivery: DeliveryAddress?
  /// The origins (`https://host[:port]`) to which the access token of the logged-in user may be sent; at most
  /// `mostOrigins`.
  package var allowedOrigins: [String] = []
  package static let mostOrigins = 16
  /// What stands for the biometric checks of a server that leaves them to the device; at most `StandIn.most`.
  package var standIns: [StandIn] = []
  /// The credentials, encoded by the adapter and stored only encrypted.
  package var secrets: SecretBytes

  package init(
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
  package func with(_ secrets: SecretBytes) -> AccountRecord {
    var record = self
    record.secrets = secrets
    return record
  }
}

/// The store of enrollments. Every change is durable when the call returns, so a crash between two steps of an
/// enrollment loses nothing that the server may already know.
package protocol EnrollmentRegistry: Sendable {
  func servers() throws(StateStoreError) -> [TokenServerRecord]
  func accounts() throws(StateStoreError) -> [AccountRecord]
  /// Inserts or replaces the record.
  func put(_ server: TokenServerRecord) throws(StateStoreError)
  /// Inserts or replaces the record and appends the entry to the audit chain, in one transaction.
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(StateStoreError)
}

extension EnrollmentRegistry {
  package func accounts(atServersOf kind: String) throws(StateStoreError) -> [AccountRecord] {
    let servers = Set(try servers().filter { $0.kind == kind }.map(\.id))
    return try accounts().filter { servers.contains($0.server) }
  }
}
