// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth

/// A client that does with requests what its scripted client does, for tests of what it adds to that.
protocol ScriptedForwarding: TokenServerClient {
  var scripted: ScriptedServerClient { get }
}

extension ScriptedForwarding {
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
