// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import ServerBackends
import Synchronization

/// A server client that can ask its server to remove accounts. It records them.
final class DeregisteringClient: Deregistration {
  private let scripted = ScriptedServerClient()
  private let fault: TokenServerError?
  private let accounts = Mutex<[AccountID]>([])

  /// - Parameter fault: thrown by each removal.
  init(fault: TokenServerError? = nil) { self.fault = fault }

  var deregistered: [AccountID] { accounts.withLock { $0 } }

  func deregister(_ account: AccountID) async throws(TokenServerError) {
    accounts.withLock { $0.append(account) }
    if let fault { throw fault }
  }

  var id: TokenServerID { scripted.id }
  var enrollments: Enrollments { scripted.enrollments }

  func validate() async throws(TokenServerError) -> Validation { try await scripted.validate() }
  func hints() -> AsyncThrowingStream<Hint, any Error> { scripted.hints() }
  func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    try await scripted.pendingRequests()
  }
  func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    try await scripted.open(pending)
  }
  func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    try await scripted.seal(response)
  }
  func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    try await scripted.deliver(response)
  }
  func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerError) -> RemoteStatus {
    try await scripted.status(of: transaction, account: account)
  }
}
