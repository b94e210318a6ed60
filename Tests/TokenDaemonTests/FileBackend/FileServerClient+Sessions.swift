// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import MobileAuth
import PINProtection
import Secrets
import ServerBackends

/// Sessions are made by tests; the proof of a request is its text.
extension FileServerClient: SessionCalls {
  func authorize(
    _ request: HTTPRequest, in session: UserSession, nonce: String?
  ) async throws(TokenServerError) -> HTTPRequest {
    var request = request
    request.headers["Authorization"] = "DPoP \(session.accessToken)"
    request.headers["DPoP"] = "\(request.method.rawValue) \(request.url) \(nonce ?? "-")"
    return request
  }

  func pinLength(of account: AccountID) async throws(TokenServerError) -> Int { throw .refused("no PIN") }
  func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerError) -> UserSession {
    throw .refused("no PIN")
  }
  func logOut(_ session: UserSession) async throws(TokenServerError) { throw .refused("no PIN") }
  func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerError) -> PINChangeTicket { throw .refused("no PIN") }
  func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession { ticket.session }
}
