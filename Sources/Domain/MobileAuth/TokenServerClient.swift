// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The client of one token server, implemented by an adapter, for all accounts of this token at the server.
package protocol TokenServerClient: Sendable {
  var id: TokenServerID { get }

  /// The enrollments that this client was made for.
  var enrollments: Enrollments { get }

  /// Checks the registration and returns the accounts that the server has removed. Called first after every start or
  /// reload.
  func validate() async throws(TokenServerError) -> Validation

  /// Streams hints until the connection is lost (throws) or the task is canceled. A hint only causes the list to be
  /// read.
  func hints() -> AsyncThrowingStream<Hint, any Error>

  /// All open requests of all accounts, newest first.
  func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest]

  /// Fetches, decrypts and verifies a request. Can be repeated until the request has ended.
  func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest

  /// Creates the bytes of the answer. Sends nothing. Consumes the PIN, if there is one, which takes the time of a key
  /// derivation.
  func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse

  /// Whether `seal`, of an answer without an entry (PIN or data of an authenticator), decides nothing: the decision is
  /// then stored while the bytes are made.
  var sealsWithoutDeciding: Bool { get }

  /// Sends the answer. Idempotent: several attempts count as one answer.
  /// - Throws: `.pinIncorrect` if the request is still open and requires the PIN again: it must be opened again.
  func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict

  /// Denies a request that cannot be opened, so that its portal need not wait for its expiry. Idempotent.
  /// - Parameters:
  ///   - why: the reason, for the server's operator.
  ///   - idempotencyKey: a UUID; the same for every attempt.
  func deny(
    unopened pending: PendingMobileAuthRequest, because why: String, idempotencyKey: String
  ) async throws(TokenServerError)

  /// Returns the state of a request, and the idempotency key of the answer from this token that ended it, if there is
  /// one.
  func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerError) -> RemoteStatus

  /// Returns the outcome of an answer whose bytes were stored, after a restart. If the server has no status API, sends
  /// the bytes again until the request expires.
  func resend(_ intent: AnswerIntent, _ body: [UInt8]) async throws(TokenServerError) -> RemoteStatus

  /// The secrets of the account without its keys, with which its user can enroll it again; nil for none.
  func remainder(of account: AccountID) -> SecretBytes?

  /// Ends the registration of an authenticator that has failed too often on this token: here at once, at the server in
  /// the background.
  func revoke(_ authenticator: String, of account: AccountID, because why: String)

  /// Notifies the adapter that the request has ended on this token without a confirmation: it need not be listed again.
  func requestDidEnd(_ transaction: TransactionID)
}

extension TokenServerClient {
  /// Default: queries the status. Override for a server without a status API.
  package func resend(_ intent: AnswerIntent, _ body: [UInt8]) async throws(TokenServerError) -> RemoteStatus {
    try await status(of: intent.transaction, account: intent.account)
  }

  /// Default: does nothing. Override for a server that accepts a denial of a request that was not opened.
  package func deny(
    unopened pending: PendingMobileAuthRequest, because why: String, idempotencyKey: String
  ) async throws(TokenServerError) {}

  /// Default: false. Override where an answer is neither verified nor stored before it is sent.
  package var sealsWithoutDeciding: Bool { false }

  /// Default: none.
  package func remainder(of account: AccountID) -> SecretBytes? { nil }

  /// Default: does nothing. Override for a server with authenticators.
  package func revoke(_ authenticator: String, of account: AccountID, because why: String) {}

  /// Default: does nothing. Override for a server without a pending list.
  package func requestDidEnd(_ transaction: TransactionID) {}
}

/// The result of `TokenServerClient.validate`.
package struct Validation: Sendable, Equatable {
  package var removedAccounts: [AccountID]
  package var disenrolledAccounts: [AccountID]
  /// Accounts that the server reports as removed in a response without a signature: no request is answered for them
  /// until the server is queried again.
  package var unconfirmedRemovals: [AccountID]
  /// Accounts whose loss of keys or push enrollment the server reports in a response without a signature: treated like
  /// `unconfirmedRemovals`.
  package var unconfirmedDisenrollments: [AccountID]
  /// The wrong PIN attempts and the limits of accounts with a PIN that this server verifies.
  package var failureCounts: [AccountID: FailureCounts]

  package init(
    removedAccounts: [AccountID] = [], disenrolledAccounts: [AccountID] = [],
    failureCounts: [AccountID: FailureCounts] = [:], unconfirmedRemovals: [AccountID] = [],
    unconfirmedDisenrollments: [AccountID] = []
  ) {
    self.unconfirmedRemovals = unconfirmedRemovals
    self.unconfirmedDisenrollments = unconfirmedDisenrollments
    self.removedAccounts = removedAccounts
    self.disenrolledAccounts = disenrolledAccounts
    self.failureCounts = failureCounts
  }
}

/// A reason to read the pending list.
package enum Hint: Sendable, Equatable {
  /// The channel is up; missed hints are covered by the list.
  case connected
  /// The channel is down, with the reason. Requests delivered another way are in the list.
  case disconnected(String)
  case pendingChanged
  /// Accounts or the device may have been removed: validate again.
  case revoked
}

package struct RemoteStatus: Sendable, Equatable {
  package var state: RemoteState
  package var receipt: String?
  package var idempotencyKey: String?

  package init(state: RemoteState, receipt: String? = nil, idempotencyKey: String? = nil) {
    self.state = state
    self.receipt = receipt
    self.idempotencyKey = idempotencyKey
  }
}
