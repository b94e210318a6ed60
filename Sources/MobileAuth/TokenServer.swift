/// One token server, spoken to by an adapter, with all accounts this token has there.
public protocol TokenServer: Sendable {
  var id: TokenServerID { get }

  /// The first call after every start or reload: is the registration still good, and which accounts are gone?
  func validate() async throws(TokenServerFault) -> Validation

  /// Runs until the connection breaks (throws) or the task is cancelled. Each hint only wakes the inbox.
  func hints() -> AsyncThrowingStream<Hint, any Error>

  /// All open requests of all accounts, newest first.
  func pendingRequests() async throws(TokenServerFault) -> [PendingMobileAuthRequest]

  /// Fetches, decrypts and verifies. Can be repeated until the request has ended.
  func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerFault) -> MobileAuthRequest

  /// Makes the answer ready to leave. Nothing is sent; a PIN in it is used up here, and takes a key derivation's time.
  func seal(_ response: ChallengeResponse) async throws(TokenServerFault) -> SealedResponse

  /// Delivers the answer; repeated, it is still one answer.
  /// - Throws: `.pinIncorrect` if the request is still open and wants the PIN again: it must be opened anew.
  func deliver(_ response: SealedResponse) async throws(TokenServerFault) -> Verdict

  /// What has become of a request, and which answer of ours (its idempotency key) settled it, if one did.
  func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerFault) -> RemoteStatus

  /// The same after a cut, of an answer whose bytes were kept: where the server does not tell, they are sent again for as
  /// long as the request lives.
  func repeated(_ intent: AnswerIntent, _ body: [UInt8]) async throws(TokenServerFault) -> RemoteStatus

  /// The request has ended here without the server's word: it need not be listed again.
  func ended(_ transaction: TransactionID)
}

extension TokenServer {
  /// Servers that tell are asked.
  public func repeated(_ intent: AnswerIntent, _ body: [UInt8]) async throws(TokenServerFault) -> RemoteStatus {
    try await status(of: intent.transaction, account: intent.account)
  }

  /// Servers with a list of their own know by themselves.
  public func ended(_ transaction: TransactionID) {}
}

/// What a token server says at start.
public struct Validation: Sendable, Equatable {
  public var removedAccounts: [AccountID]
  public var disenrolledAccounts: [AccountID]
  /// Removed, as far as an answer can be believed that nobody has signed: nothing is answered for them until it is asked
  /// again.
  public var unconfirmedRemovals: [AccountID]
  /// The same of those whose keys or push enrollment are said to be gone.
  public var unconfirmedDisenrollments: [AccountID]
  /// Of accounts with a PIN that this server judges.
  public var failureCounts: [AccountID: FailureCounts]

  public init(
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

/// A reason to look at the pending list.
public enum Hint: Sendable, Equatable {
  /// The channel is up; whatever was missed is in the list.
  case connected
  /// The channel is down, and why. What comes another way is in the list all the same.
  case disconnected(String)
  case pendingChanged
  /// Accounts or the device may be gone: validate again.
  case revoked
}

public struct RemoteStatus: Sendable, Equatable {
  public var state: RemoteState
  public var receipt: String?
  public var idempotencyKey: String?

  public init(state: RemoteState, receipt: String? = nil, idempotencyKey: String? = nil) {
    self.state = state
    self.receipt = receipt
    self.idempotencyKey = idempotencyKey
  }
}
