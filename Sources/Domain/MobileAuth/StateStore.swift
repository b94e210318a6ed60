// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The store of the audit chain.
package protocol AuditRecorder: Sendable {
  /// Appends the entry to the audit chain. Durable when it returns.
  func record(_ entry: AuditEntry) throws(StateStoreError)
}

/// A change of the state store that its caller does not wait for. A crash can forget it: the entries that a request was
/// announced and opened, and the end of a request, which is then queried again.
package enum DeferredChange: Sendable, Equatable {
  case record(AuditEntry)
  /// Like `StateStore.resolveIntent`.
  case resolveIntent(TransactionID, AuditEntry)
}

/// The state store of the request handler. Every change except `enqueue` is durable when the call returns. A call that
/// throws has changed nothing; the handler then sends no answer.
package protocol StateStore: AuditRecorder {
  /// Adds a change without waiting for storage. It becomes durable with the next change, in the order of the calls.
  /// `unresolvedIntents` takes it into account at once.
  func enqueue(_ change: DeferredChange)

  /// The number of changes of `enqueue` that are not durable yet.
  var queueLength: Int { get }

  /// Makes all changes of `enqueue` durable. After an error they are tried again with the next change.
  func flush() throws(StateStoreError)

  /// Stores that an answer is about to be sent; called before it is sent.
  func journal(_ intent: AnswerIntent, _ entry: AuditEntry) throws(StateStoreError)

  /// Deletes the intent and records how the request ended, in one transaction.
  func resolveIntent(_ transaction: TransactionID, _ entry: AuditEntry) throws(StateStoreError)

  /// Answers that were or may have been sent and whose outcome is unknown, for example after a crash or connection
  /// loss.
  func unresolvedIntents() throws(StateStoreError) -> [AnswerIntent]

  /// Destroys the account's keys and keeps its name, so that the user sees that it must be enrolled again.
  /// - Parameters:
  ///   - enrollment: the enrollment that a server has revoked; nil for any.
  ///   - remainder: the account's secrets from now on, which are no keys; with nil, nothing but the name stays.
  /// - Throws: `.conflict` with `.enrolledAgain`, without a change, if the account has another enrollment.
  func dropKeys(
    of account: AccountID, if enrollment: EnrollmentID?, keeping remainder: SecretBytes?, _ entry: AuditEntry
  ) throws(StateStoreError)

  /// Destroys everything about the account. Other accounts are unchanged.
  /// - Parameter enrollment: as for `dropKeys`.
  /// - Throws: as `dropKeys`.
  func wipe(account: AccountID, if enrollment: EnrollmentID?, _ entry: AuditEntry) throws(StateStoreError)

  /// Destroys everything about the token server and all its accounts. Others are unchanged.
  /// - Parameter registration: the registration that the server has revoked; nil for any.
  /// - Throws: as `dropKeys`.
  func wipe(server: TokenServerID, if registration: EnrollmentID?, _ entry: AuditEntry) throws(StateStoreError)
}

/// The record of an answer that is being sent, sufficient to query its outcome. It contains the answer only if the
/// server cannot report the outcome.
package struct AnswerIntent: Sendable, Equatable {
  package var transaction: TransactionID
  package var server: TokenServerID
  package var account: AccountID
  /// UUID sent as `Idempotency-Key`.
  package var idempotencyKey: String
  package var decision: Decision
  /// The bytes of an answer whose server cannot report its outcome: the same bytes are sent again after a restart.
  /// Otherwise nil.
  package var body: [UInt8]?

  package init(
    transaction: TransactionID, server: TokenServerID, account: AccountID, idempotencyKey: String, decision: Decision,
    body: [UInt8]? = nil
  ) {
    self.transaction = transaction
    self.server = server
    self.account = account
    self.idempotencyKey = idempotencyKey
    self.decision = decision
    self.body = body
  }
}

/// An entry of the audit chain, without number, time stamp and MAC.
package struct AuditEntry: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable {
    case enrolled, removed, renamed, wiped, disenrolled, locked, unlocked
    case announced, opened, refused, decided, settled
    /// An answer was sent, or may have been, and its outcome is not known.
    case unconfirmed
    case loggedIn = "logged-in"
    case loggedOut = "logged-out"
    /// Entries caused by one server's requests were omitted.
    case leftOut = "left-out"
    /// The pinned keys of a server's certificate were removed.
    case pinsDropped = "pins-dropped"
    /// An origin was added to the account's allow-list, or removed from it.
    case originsChanged = "origins-changed"
    case pinSet = "pin-set"
    case pinChanged = "pin-changed"
    case pinWrong = "pin-wrong"
    case choiceWrong = "choice-wrong"
    case authenticatorRegistered = "authenticator-registered"
    case authenticatorDeregistered = "authenticator-deregistered"
    case authenticatorPreferred = "authenticator-preferred"
    /// The server has deregistered it.
    case authenticatorRevoked = "authenticator-revoked"
    case authenticatorFailed = "authenticator-failed"
    case codeShown = "code-shown"
    case buttonStuck = "button-stuck"
    case panelUnavailable = "panel-unavailable"
    /// Entries that were about to be dropped could not be verified.
    case chainBroken = "chain-broken"
  }

  package var kind: Kind
  package var account: AccountID?
  package var transaction: TransactionID?
  /// For display, never a secret: outcome, reason, error number.
  package var detail: String
  /// Milliseconds since 1970, by the board's wall clock.
  package var wallClockMilliseconds: Int64

  package init(
    _ kind: Kind, account: AccountID? = nil, transaction: TransactionID? = nil, detail: String = "",
    wallClockMilliseconds: Int64
  ) {
    self.kind = kind
    self.account = account
    self.transaction = transaction
    self.detail = detail
    self.wallClockMilliseconds = wallClockMilliseconds
  }
}

extension AuditEntry {
  /// The detail of a `leftOut` entry.
  package static func leftOutDetail(limit: Int) -> String {
    "more than \(limit) lines in an hour about requests of its server"
  }
}

/// For what this token or its user decided: it concerns the present enrollment, whichever that is.
extension StateStore {
  package func dropKeys(of account: AccountID, _ entry: AuditEntry) throws(StateStoreError) {
    try dropKeys(of: account, if: nil, keeping: nil, entry)
  }

  package func wipe(account: AccountID, _ entry: AuditEntry) throws(StateStoreError) {
    try wipe(account: account, if: nil, entry)
  }

  package func wipe(server: TokenServerID, _ entry: AuditEntry) throws(StateStoreError) {
    try wipe(server: server, if: nil, entry)
  }

  /// Destroys an account if it still exists. After a removal both the command and the server's notification delete it.
  package func wipe(ifThere account: AccountID, _ entry: AuditEntry) throws(StateStoreError) {
    do { try wipe(account: account, entry) } catch {
      guard case .notFound(.account) = error else { throw error }
    }
  }
}
