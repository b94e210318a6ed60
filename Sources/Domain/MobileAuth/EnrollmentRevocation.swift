// SPDX-License-Identifier: Apache-2.0
/// The local data that a fault revokes: a server, an account or its keys. Applied once, whichever step reported the
/// fault.
public struct EnrollmentRevocation: Sendable {
  private enum Extent {
    case server(TokenServerID)
    case account(AccountID)
    case keys(AccountID)
  }

  private let extent: Extent
  private let account: AccountID?
  private let transaction: TransactionID?
  private let detail: String

  /// - Parameters:
  ///   - account: the account of the failed step, if any.
  ///   - transaction: the transaction of the failed step, if any.
  /// - Returns: nil for a fault that revokes nothing.
  public init?(
    _ fault: TokenServerError, at server: TokenServerID, _ account: AccountID?, _ transaction: TransactionID? = nil
  ) {
    switch (fault.effect, account) {
    case (.wipeServer, _): extent = .server(server)
    case (.wipeAccount, let account?): extent = .account(account)
    case (.dropKeys, let account?): extent = .keys(account)
    case (.wipeAccount, nil), (.dropKeys, nil), (.retry, _), (.askAgain, _), (.drop, _), (.withhold, _), (.stop, _):
      return nil
    }
    self.account = account
    self.transaction = transaction
    detail = "\(server): \(fault)"
  }

  /// Deletes the data and records that in the audit chain.
  /// - Parameter moment: wall clock, in milliseconds since 1970.
  /// - Returns: the audit entry, or nil if the data was already removed.
  public func apply(on stateStore: any StateStore, at moment: Int64) throws(StateStoreError) -> AuditEntry? {
    let kind = if case .keys = extent { AuditEntry.Kind.disenrolled } else { AuditEntry.Kind.wiped }
    let entry = AuditEntry(
      kind, account: account, transaction: transaction, detail: detail, wallClockMilliseconds: moment)
    do {
      switch extent {
      case .server(let server): try stateStore.wipe(server: server, entry)
      case .account(let account): try stateStore.wipe(account: account, entry)
      case .keys(let account): try stateStore.dropKeys(of: account, entry)
      }
      return entry
    } catch {
      switch error {
      case .notFound(.account), .notFound(.server): return nil
      default: throw error
      }
    }
  }
}
