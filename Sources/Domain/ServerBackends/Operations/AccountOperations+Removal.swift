// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// Whether the server of a removed account knows that it was removed.
package enum RemovalNotification: Sendable {
  /// The server confirmed the removal, or had removed the account before.
  case confirmed
  /// A token cannot remove accounts at servers of this kind; their administrator must.
  case unsupported(TokenServerRecord)
  /// The account has no server.
  case withoutServer
  /// The server was not notified, for this reason.
  case failed(any Error)
}

extension AccountOperations {
  /// Removes an account: at its server, if servers of its kind permit that, and then here, in any case.
  /// - Parameters:
  ///   - running: the client of the account's server; nil to make one.
  ///   - detail: for the audit chain, by the result of the notification.
  /// - Throws: `StateStoreError` if the account could not be removed here.
  package func remove(
    _ account: AccountRecord, through running: (any TokenServerClient)? = nil,
    noting detail: (RemovalNotification) -> String
  ) async throws(StateStoreError) -> RemovalNotification {
    let notification = await deregister(account, through: running)
    let entry = environment.auditEntry(.removed, account: account.id, detail: detail(notification))
    try store.wipe(ifThere: account.id, entry)
    return notification
  }

  /// Gives up the keys of an account, or its push enrollment alone: at its server first, so that nothing is lost
  /// without it. The PIN and the other authenticators stay, and enroll the account again.
  /// - Throws: `AccountError.withoutLayers`, `TokenServerError`, `StateStoreError`.
  package func disenroll(
    _ account: AccountRecord, through client: any TokenServerClient, pushOnly: Bool
  ) async throws {
    guard let client = client as? any Disenrollment else { throw AccountError.withoutLayers(account.id) }
    try await client.disenroll(account.id, pushOnly: pushOnly)
    let entry = environment.auditEntry(
      .disenrolled, account: account.id, detail: pushOnly ? "push alone, by a command" : "by a command")
    try store.dropKeys(
      of: account.id, if: account.enrollment, keeping: client.remainder(of: account.id), entry)
    environment.report(.audited(entry))
    environment.report(.step(AuthenticationStep(.mustEnroll(.init(.disenrolled)), of: account.id)))
  }

  private func deregister(
    _ account: AccountRecord, through running: (any TokenServerClient)?
  ) async -> RemovalNotification {
    do {
      let server = try server(of: account)
      guard let client = try running ?? client(for: server) else { return .withoutServer }
      guard let client = client as? any Deregistration else { return .unsupported(server) }
      try await client.deregister(account.id)
      return .confirmed
    } catch let fault as TokenServerError where [9002, 9003].contains(fault.number) {
      // The server has removed the account already. Signed or not, that is no reason to keep it here.
      return .confirmed
    } catch { return .failed(error) }
  }
}
