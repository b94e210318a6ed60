// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import ServerBackends

/// Sessions that the token server no longer knows.
extension AccountService {
  /// Starts a PIN change in the account's session. If the server no longer knows the session, it ends here, and the
  /// same PIN begins a new one.
  /// - Throws: as `UserSessions.beginPINChange`.
  func beginPINChange(
    of account: AccountID, typing pin: PIN, at server: any UserSessions
  ) async throws -> PINChangeTicket {
    let session = service.session.flatMap { $0.account == account ? $0 : nil }
    do { return try await server.beginPINChange(account, typing: pin, session: session) } catch {
      guard case .notAuthenticated = error, session != nil else { throw error }
      service.set(nil)
      try record(.loggedOut, account, "the token server no longer knows the session")
      return try await server.beginPINChange(account, typing: pin, session: nil)
    }
  }
}
