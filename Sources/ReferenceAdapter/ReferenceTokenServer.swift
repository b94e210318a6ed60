public import Courier
import Cryptography
public import MobileAuth
import OpenPGP
import ReferenceProtocol
import Synchronization

/// The reference token server, seen from the token: an adapter between the domain and `/device/v1`.
public final class ReferenceTokenServer: TokenServer {
  /// Kind of `TokenServerRecord`.
  public static let kind = "reference"
  /// The product's name and version, as the server's administrator sees them.
  public static let software = (id: "approval-token", version: "0.1.0")

  private struct Account {
    let id: AccountID
    let key: OpenPGPKey
    let serverCertificate: OpenPGPCertificate
  }

  public let id: TokenServerID
  private let clientID: String
  private let client: DeviceClient
  private let feed: EventFeed
  private let timekeeper: any Timekeeper
  /// By profile.
  private let accounts: [String: Account]
  /// Accounts without keys, by profile: kept only so that a person sees that they must be enrolled again.
  private let lapsed: [String: AccountID]
  /// The last sealed answer. Sealing is randomised, and a repeat must be the same bytes under the same key. In memory
  /// only: answers are never written.
  private let lastAnswer = Mutex((idempotencyKey: "", body: [UInt8]()))

  /// - Parameter accounts: those of this server; only active ones are spoken for.
  public init(
    _ record: TokenServerRecord, accounts: [AccountRecord], courier: any Courier, timekeeper: any Timekeeper
  ) throws(CustodyFault) {
    let credentials = try DeviceCredentials(record)
    guard let clientID = credentials.clientID else { throw .unknown("registration with \(record.id)") }
    id = record.id
    self.clientID = clientID
    self.timekeeper = timekeeper
    client = DeviceClient(
      issuer: record.url, clientID: clientID, key: credentials.deviceKey, courier: courier, timekeeper: timekeeper)
    feed = EventFeed(client: client, timekeeper: timekeeper, memory: EventFeed.Memory())
    var known: [String: Account] = [:]
    for record in accounts where record.stage == .active {
      let credentials = try AccountCredentials(record)
      guard let certificate = credentials.serverCertificate else { throw .damaged("account \(record.id)") }
      known[record.profile] = Account(id: record.id, key: credentials.key, serverCertificate: certificate)
    }
    self.accounts = known
    let keyless = accounts.filter { $0.stage == .mustEnrolAgain }.map { ($0.profile, $0.id) }
    lapsed = Dictionary(keyless) { first, _ in first }
  }

  /// The pins this server was enrolled with.
  public static func pins(of record: TokenServerRecord) throws(CustodyFault) -> [String] {
    try DeviceCredentials(record).pins
  }

  public func validate() async throws(TokenServerFault) -> Validation {
    let request = ValidationRequest(
      softwareVersion: Self.software.version, osVersion: "linux",
      profiles: (Array(accounts.keys) + lapsed.keys).sorted())
    let response = try await client.call(.post, "/validations", body: JSON.encode(request))
    let validation = try DeviceClient.decode(ValidationResponse.self, response)
    return Validation(
      // Whoever enrols again gets a new profile in the place of the old one, and the server says that this is gone.
      removedAccounts: validation.removedProfiles.compactMap { accounts[$0]?.id ?? lapsed[$0] },
      disenrolledAccounts: validation.disenrolledProfiles.compactMap { accounts[$0]?.id })
  }

  public func hints() -> AsyncThrowingStream<Hint, any Error> {
    // Hints are idempotent: a few unread ones say all that a thousand would.
    AsyncThrowingStream(bufferingPolicy: .bufferingOldest(8)) { continuation in
      let task = Task { [feed] in
        do {
          try await feed.run { continuation.yield($0) }
          continuation.finish()
        } catch { continuation.finish(throwing: error) }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  public func pendingRequests() async throws(TokenServerFault) -> [PendingMobileAuthRequest] {
    let asked = timekeeper.now
    let list = try DeviceClient.decode(PendingList.self, try await client.call(.get, "/pending"))
    return list.requests.compactMap { entry in
      // Requests of profiles we do not have, and those a newer one replaces, are never shown.
      guard let account = accounts[entry.profileID], let transaction = TransactionID(entry.transactionID),
        entry.supersededBy == nil, (0...86_400_000).contains(entry.expiresInMs)
      else { return nil }
      return PendingMobileAuthRequest(
        transaction: transaction, server: id, account: account.id, sentAtMilliseconds: entry.sentAtMs,
        timeToLive: .milliseconds(entry.timeToLiveMs), message: entry.message,
        userInfo: entry.typeHint.map { ["type": $0] } ?? [:], deadline: asked + .milliseconds(entry.expiresInMs))
    }
  }

  public func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerFault) -> MobileAuthRequest {
    let (profile, account) = try self.account(pending.account)
    let response = try await client.call(.get, "/requests/\(pending.transaction)/message")
    let sealed = try DeviceClient.decode(SealedRequest.self, response)
    guard let message = bytes(base64: sealed.message) else { throw .notHandleable("the message is not Base64") }
    let plaintext: [UInt8]
    do { plaintext = try account.key.open(message, from: account.serverCertificate) } catch {
      throw .notHandleable("the message is not one that the token server sealed for us: \(error)")
    }
    let request: ApprovalRequest
    do { request = try JSON.decode(ApprovalRequest.self, from: plaintext) } catch { throw .notHandleable("\(error)") }
    guard request.v == 1 else { throw .notHandleable("version \(request.v) of the request format") }
    guard request.iss == client.issuer else { throw .notHandleable("the message is from \(request.iss)") }
    guard request.method == .push else { throw .notHandleable("it needs \(request.method.rawValue)") }
    guard let nonce = bytes(base64URL: request.nonce), nonce.count == 32 else { throw .notHandleable("no nonce") }
    guard let transaction = TransactionID(request.transactionID) else { throw .notHandleable("no transaction id") }
    return try pending.opened(
      VerifiedContents(
        transaction: transaction, profileMatches: request.clientID == clientID && request.profileID == profile,
        type: request.type, message: request.message, challenge: .confirmation,
        answerContext: SHA256.hash(plaintext) + nonce))
  }

  public func deliver(_ response: ChallengeResponse) async throws(TokenServerFault) -> Verdict {
    let body = try sealedAnswer(response)
    let reply = try await client.call(
      .post, "/requests/\(response.request.pending.transaction)/answers", body: body,
      headers: ["Idempotency-Key": response.idempotencyKey])
    let status = try DeviceClient.decode(RequestStatus.self, reply)
    guard let receipt = status.receipt else { throw .unreachable("the token server's answer has no receipt") }
    return try response.verdict(RemoteState(status.state), receipt: receipt)
  }

  public func status(
    of transaction: TransactionID, account: AccountID
  ) async throws(TokenServerFault) -> RemoteStatus {
    let reply = try await client.call(.get, "/requests/\(transaction)")
    let status = try DeviceClient.decode(RequestStatus.self, reply)
    return RemoteStatus(
      state: RemoteState(status.state), receipt: status.receipt, idempotencyKey: status.idempotencyKey)
  }

  /// Tells the server that the account leaves this device. The caller wipes it here, whatever the answer.
  public func deregister(_ account: AccountID) async throws(TokenServerFault) {
    let (profile, _) = try self.account(account)
    _ = try await client.call(.delete, "/profiles/\(profile)")
  }

  /// Unix seconds by the server's clock, for boards that have none.
  public var serverTime: Int64 { get async { await client.now } }

  private func account(_ id: AccountID) throws(TokenServerFault) -> (profile: String, Account) {
    guard let found = accounts.first(where: { $0.value.id == id }) else { throw .notEnrolled }
    return (found.key, found.value)
  }

  private func sealedAnswer(_ response: ChallengeResponse) throws(TokenServerFault) -> [UInt8] {
    let cached = lastAnswer.withLock { $0 }
    if cached.idempotencyKey == response.idempotencyKey { return cached.body }
    let request = response.request
    let (profile, account) = try self.account(request.pending.account)
    let answer = ApprovalAnswer(
      aud: client.issuer, clientID: clientID, profileID: profile, transactionID: request.pending.transaction.text,
      requestSHA256: request.contents.answerContext.prefix(32).base64URL,
      nonce: request.contents.answerContext.dropFirst(32).base64URL, attempt: 1,
      decision: response.decision == .accept ? .accept : .deny, reason: response.decision.reason, methodUsed: .push,
      gesture: ApprovalAnswer.Gesture(response.gesture), answeredAfterMs: response.answeredAfter.milliseconds)
    let sealed: [UInt8]
    do { sealed = try account.key.seal(JSON.encode(answer), to: account.serverCertificate) } catch {
      throw .refused("sealing the answer failed: \(error)")
    }
    let body = JSON.encode(SealedAnswer(answer: sealed.base64))
    lastAnswer.withLock { $0 = (response.idempotencyKey, body) }
    return body
  }
}

extension Decision {
  fileprivate var reason: ReferenceProtocol.DenialReason? {
    switch self {
    case .accept: nil
    case .deny(.declined): .declined
    case .deny(.cancelled): .cancelled
    case .deny(.notMe): .notMe
    }
  }
}

extension ApprovalAnswer.Gesture {
  fileprivate init(_ gesture: MobileAuth.Gesture) {
    let kind: Kind =
      switch gesture.kind {
      case .hold: .hold
      case .doublePress: .doublePress
      case .veryLongHold: .veryLongHold
      case .enter: .enter
      case .cancelKeys: .cancelKeys
      }
    self.init(kind: kind, heldMs: gesture.held.milliseconds)
  }
}
