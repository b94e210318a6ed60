public import MobileAuth
public import Secrets

/// Who keeps the half of `mfauth` that makes one-time passwords.
public struct OATHDesk: Sendable {
  let keep: @Sendable (OATHCredential, PIN?, _ known: AccountRecord, _ account: AccountRecord) throws -> Void
  let drop: @Sendable (AccountID) throws -> Void

  /// - Parameters:
  ///   - keep: keeps the half of an account that AM has not heard of yet, in place of what was kept for it before, and the
  ///     account with it: all or nothing, durable when it returns. Throws if the account is no longer as it was known.
  ///     A PIN, if there is one, has the secret from then on, and is the account's only one.
  ///   - drop: forgets what an earlier code gave an account whose enrolment is not finished, and the PIN that had it.
  ///     Does nothing where there is none.
  public init(
    keep: @escaping @Sendable (OATHCredential, PIN?, _ known: AccountRecord, _ account: AccountRecord) throws -> Void,
    drop: @escaping @Sendable (AccountID) throws -> Void
  ) {
    self.keep = keep
    self.drop = drop
  }
}
