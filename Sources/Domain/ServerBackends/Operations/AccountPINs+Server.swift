// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import PINProtection
package import Secrets

/// PINs that the account's server verifies.
extension AccountPINs {
  /// Logs in with the PIN.
  /// - Parameters:
  ///   - typed: the PIN, if it is typed already.
  ///   - failure: why the authenticator that was asked before did not count.
  /// - Throws: `TokenServerError`, `PanelDialog.EntryError`, `StateStoreError`.
  package func logIn(
    _ account: AccountRecord, at server: any UserSessions, length: Int, typed: PIN? = nil,
    after failure: AuthenticationStep.Failure? = nil, on panel: any Panel, _ progress: Progress
  ) async throws -> UserSession {
    if typed == nil { progress("type the PIN of \(account.id) on the keypad, then Enter") }
    return try await withPIN(
      of: account, server.enrollments, for: .login, length: length, typed: typed, after: failure, on: panel, progress
    ) { pin in
      let session = try await server.logIn(account.id, typing: pin)
      try record(.loggedIn, account.id)
      await panel.show(.confirmed)
      return session
    }
  }

  /// Changes the PIN.
  /// - Returns: the session the change was made in.
  /// - Throws: as `logIn`; `AccountError.pinUnconfirmed` if only the server knows which PIN is valid.
  package func change(
    of account: AccountRecord, at server: any UserSessions, length: Int, on panel: any Panel, _ progress: Progress
  ) async throws -> UserSession {
    progress("type the current PIN of \(account.id) on the keypad, then Enter")
    let ticket = try await withPIN(
      of: account, server.enrollments, for: .pinChange, length: length, on: panel, progress
    ) { pin in
      try await beginChange(of: account.id, typing: pin, at: server)
    }
    progress(Self.askForNewPIN(ticket.policy.length))
    let dialog = PanelDialog(panel, in: environment)
    let pin = try await dialog.newPIN(keeping: ticket.policy)
    let session = try await finish(ticket, choosing: pin, at: server)
    try record(.pinChanged, account.id, "\(pin.count) digits")
    await dialog.show(.confirmed)
    return session
  }

  /// Starts a PIN change in the account's session, if its PIN began it; otherwise the PIN begins one. If the server no
  /// longer knows the session, it ends here, and the same PIN begins a new one.
  /// - Throws: as `UserSessions.beginPINChange`.
  func beginChange(
    of account: AccountID, typing pin: PIN, at server: any UserSessions
  ) async throws -> PINChangeTicket {
    let session = users.session.flatMap { $0.isOfPIN(of: account) ? $0 : nil }
    do { return try await server.beginPINChange(account, typing: pin, session: session) } catch {
      guard case .notAuthenticated = error, session != nil else { throw error }
      try endLostSession(of: account)
      return try await server.beginPINChange(account, typing: pin, session: nil)
    }
  }

  private func finish(
    _ ticket: PINChangeTicket, choosing pin: PIN, at server: any UserSessions
  ) async throws -> UserSession {
    do {
      return try await server.finishPINChange(ticket, choosing: pin, parameters: context.keyDerivation)
    } catch let fault as TokenServerError {
      switch fault {
      case .noNetwork(let why), .unreachable(let why): throw AccountError.pinUnconfirmed(why: why)
      default: throw fault
      }
    }
  }

  /// Enrolls an account again whose keys the server has removed.
  /// - Throws: as `logIn`.
  package func enrollAgain(
    _ account: AccountRecord, at backend: any Reenrollment, length: Int, on panel: any Panel,
    _ progress: @escaping Progress
  ) async throws -> AccountRecord {
    progress("type the PIN of \(account.id) on the keypad, then Enter")
    guard let server = try store.servers().first(where: { $0.id == account.server }) else {
      throw StateStoreError.notFound(.server(account.server))
    }
    return try await withPIN(
      of: account, Enrollments(server, [account]), for: .enrollment, length: length, on: panel, progress
    ) {
      let enrolled = try await backend.enrollAgain(account, typing: $0, progress)
      await panel.show(.confirmed)
      return enrolled
    }
  }

  /// Prompts until the server finds the PIN right.
  /// - Parameters:
  ///   - typed: the PIN of the first attempt, if it is typed already.
  ///   - failure: why an earlier input did not count.
  func withPIN<Result: Sendable>(
    of account: AccountRecord, _ enrollments: Enrollments, for purpose: AuthenticationStep.Purpose, length: Int,
    typed: PIN? = nil, after failure: AuthenticationStep.Failure? = nil, on panel: any Panel, _ progress: Progress,
    _ body: (PIN) async throws -> Result
  ) async throws -> Result {
    let dialog = PanelDialog(panel, in: environment)
    var (typed, failure) = (typed, failure)
    while true {
      let pin: PIN
      if let first = typed {
        (pin, typed) = (first, nil)
      } else {
        reportPINChallenge(of: account.id, for: purpose, users.failureCounts(of: account.id), failure)
        pin = try await dialog.currentPIN(length: length)
      }
      await panel.show(.talkingToServer)
      let counts: FailureCounts
      do {
        let result = try await body(pin)
        users.noteRightPIN(of: account.id)
        return result
      } catch TokenServerError.pinIncorrect(let reported) {
        counts = reported
        failure = .init(.pinIncorrect(reported))
      } catch let fault as TokenServerError {
        try await revoke(account, by: fault, enrollments, on: panel)
        throw fault
      }
      users.note(counts, of: account.id)
      try record(.pinWrong, account.id, "\(counts)")
      progress(Self.askAgain(after: counts))
      await panel.show(.pinWrong(remaining: counts.remaining))
    }
  }

  /// Removes what the server has revoked with the fault, if anything.
  private func revoke(
    _ account: AccountRecord, by fault: TokenServerError, _ enrollments: Enrollments, on panel: any Panel
  ) async throws {
    let loss = EnrollmentRevocation(fault, at: account.server, account.id, of: enrollments)
    guard let outcome = try loss?.apply(on: store, in: environment) else { return }
    if let entry = outcome.entry { users.log(entry) }
    if outcome != .enrolledAgain { await showLoss(of: account.id, by: fault, on: panel) }
    users.reload()
  }
}
