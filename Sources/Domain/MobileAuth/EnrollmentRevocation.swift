// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The local data that a fault revokes: a server, an account or its keys. Applied once, whichever step reported the
/// fault, and only to the enrollments that the reporting client was made for.
package struct EnrollmentRevocation: Sendable {
  private enum Extent {
    case server(TokenServerID, EnrollmentID)
    case account(AccountID, EnrollmentID)
    case keys(AccountID, EnrollmentID)
  }

  /// How the revocation ended.
  package enum Outcome: Sendable, Equatable {
    case applied(AuditEntry)
    /// The data was already removed.
    case alreadyRemoved
    /// There is a later enrollment under the same name, which the fault does not concern.
    case enrolledAgain

    package var entry: AuditEntry? { if case .applied(let entry) = self { entry } else { nil } }
  }

  private let extent: Extent
  private let remainder: SecretBytes?
  private let account: AccountID?
  private let transaction: TransactionID?
  private let detail: String
  private let fault: TokenServerError
  /// The accounts that are lost.
  private let accounts: [AccountID]

  /// - Parameters:
  ///   - account: the account of the failed step, if any.
  ///   - transaction: the transaction of the failed step, if any.
  ///   - enrollments: those of the client that reported the fault.
  ///   - remainder: what stays of an account whose keys are dropped, as in `TokenServerClient.remainder`.
  /// - Returns: nil for a fault that revokes nothing, or an account that the client was not made for.
  package init?(
    _ fault: TokenServerError, at server: TokenServerID, _ account: AccountID?, _ transaction: TransactionID? = nil,
    of enrollments: Enrollments, keeping remainder: SecretBytes? = nil
  ) {
    let enrolled = account.flatMap { account in enrollments.accounts[account].map { (account, $0) } }
    switch (fault.effect, enrolled) {
    case (.wipeServer, _): extent = .server(server, enrollments.server)
    case (.wipeAccount, let (account, enrollment)?): extent = .account(account, enrollment)
    case (.dropKeys, let (account, enrollment)?): extent = .keys(account, enrollment)
    case (.wipeAccount, nil), (.dropKeys, nil), (.retry, _), (.askAgain, _), (.drop, _), (.block, _), (.stop, _):
      return nil
    }
    self.account = account
    self.remainder = remainder
    self.transaction = transaction
    detail = "\(server): \(fault)"
    self.fault = fault
    accounts =
      if case .server = extent { enrollments.accounts.keys.sorted { $0.text < $1.text } } else {
        [account].compactMap(\.self)
      }
  }

  /// Deletes the data and records that in the audit chain.
  package func apply(
    on stateStore: any StateStore, in environment: TokenEnvironment
  ) throws(StateStoreError) -> Outcome {
    let kind = if case .keys = extent { AuditEntry.Kind.disenrolled } else { AuditEntry.Kind.wiped }
    let entry = environment.auditEntry(kind, account: account, transaction: transaction, detail: detail)
    do {
      switch extent {
      case .server(let server, let registration): try stateStore.wipe(server: server, if: registration, entry)
      case .account(let account, let enrollment): try stateStore.wipe(account: account, if: enrollment, entry)
      case .keys(let account, let enrollment):
        try stateStore.dropKeys(of: account, if: enrollment, keeping: remainder, entry)
      }
      reportLoss(in: environment)
      return .applied(entry)
    } catch {
      switch error {
      case .notFound(.account), .notFound(.server):
        // The token has wiped the account itself.
        if fault == .pinsUsedUp { reportLoss(in: environment) }
        return .alreadyRemoved
      case .conflict(_, .enrolledAgain): return .enrolledAgain
      default: throw error
      }
    }
  }

  private func reportLoss(in environment: TokenEnvironment) {
    for account in accounts {
      environment.report(.step(AuthenticationStep(.mustEnroll(.init(fault)), of: account, transaction)))
    }
  }
}
