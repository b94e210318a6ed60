// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import ServerBackends

struct FileServerClient: TokenServerClient, Deregistration {
  let id: TokenServerID
  let enrollments: Enrollments
  let server: FileServer
  let accounts: [AccountRecord]
  let environment: TokenEnvironment

  func validate() async throws(TokenServerError) -> Validation { Validation() }

  func hints() -> AsyncThrowingStream<Hint, any Error> {
    AsyncThrowingStream { [environment] continuation in
      continuation.yield(.connected)
      let polling = Task {
        while !Task.isCancelled {
          try await environment.sleep(for: .milliseconds(20))
          continuation.yield(.pendingChanged)
        }
      }
      continuation.onTermination = { _ in polling.cancel() }
    }
  }

  func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    let contents = try reading()
    return accounts.flatMap { account in
      (contents.pending[account.profile] ?? []).compactMap { request in
        TransactionID(request.id).map {
          PendingMobileAuthRequest(
            transaction: $0, server: id, account: account.id, sentAtMilliseconds: 0, timeToLive: .seconds(600),
            message: request.message, deadline: environment.now + .seconds(600))
        }
      }
    }
  }

  func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    try pending.opened(
      VerifiedContents(
        transaction: pending.transaction, account: pending.account, type: "file",
        texts: VerifiedTexts(signedWith: .hmac, type: "file", message: pending.message), challenge: .confirmation,
        answerContext: []))
  }

  func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    response.sealed(Array((response.decision == .accept ? "approved" : "denied").utf8))
  }

  func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    let transaction = response.request.pending.transaction.text
    try changing { contents in
      contents.answers[transaction] = String(decoding: response.body, as: UTF8.self)
      contents.pending = contents.pending.mapValues { $0.filter { $0.id != transaction } }
    }
    return try response.verdict(response.decision == .accept ? .authenticated : .rejected, receipt: "file")
  }

  func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerError) -> RemoteStatus {
    switch try reading().answers[transaction.text] {
    case "approved": RemoteStatus(state: .authenticated)
    case nil: RemoteStatus(state: .open)
    default: RemoteStatus(state: .rejected)
    }
  }

  func deregister(_ account: AccountID) async throws(TokenServerError) {
    guard let user = accounts.first(where: { $0.id == account })?.profile else { throw .notEnrolled }
    try changing { $0.pending[user] = nil }
  }

  private func reading() throws(TokenServerError) -> FileServer.Contents {
    do { return try server.read() } catch { throw .unreachable("\(error)") }
  }

  private func changing(_ body: (inout FileServer.Contents) -> Void) throws(TokenServerError) {
    do { try server.change(body) } catch { throw .unreachable("\(error)") }
  }
}
