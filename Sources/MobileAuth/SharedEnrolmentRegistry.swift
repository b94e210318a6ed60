import Secrets

/// What becomes of an account that is still as it was read.
public enum AccountChange: Sendable {
  /// In its place, under the same name; the entry goes into the audit chain in the same step.
  case put(AccountRecord, AuditEntry?)
  /// As `Custody.dropKeys`.
  case dropKeys(AuditEntry)
  /// As `Custody.wipe`.
  case wipe(AuditEntry)
}

/// Where enrolments are kept that two may change at once: one gives an account up while a message from its server proves
/// that it is enrolled.
public protocol SharedEnrolmentRegistry: EnrolmentRegistry {
  /// Durable when it returns.
  /// - Parameter known: the account as it was read.
  /// - Returns: false if the account is another by now, or gone; nothing has happened then.
  func change(_ known: AccountRecord, _ change: AccountChange) throws(CustodyFault) -> Bool
}

extension SharedEnrolmentRegistry {
  /// Keeps what `body` makes of the account. It is asked again where something else was quicker.
  /// - Parameters:
  ///   - entry: goes into the audit chain in the same step.
  ///   - body: nil leaves the account as it is.
  /// - Returns: the account as it is kept now; nil if there is none, or if it was left.
  /// - Throws: `CustodyFault`, and what `body` throws.
  @discardableResult
  public func update(
    _ account: AccountID, noting entry: AuditEntry? = nil, _ body: (AccountRecord) throws -> AccountRecord?
  ) throws -> AccountRecord? {
    while true {
      guard let known = try accounts().first(where: { $0.id == account }), let changed = try body(known) else {
        return nil
      }
      if try change(known, .put(changed, entry)) { return changed }
    }
  }
}

extension AccountRecord {
  /// The same in everything, its secrets too.
  public func isSame(as other: AccountRecord) -> Bool {
    id == other.id && server == other.server && profile == other.profile && stage == other.stage
      && SecretBytes.constantTimeEqual(secrets, other.secrets)
  }
}
