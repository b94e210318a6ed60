import Courier
public import Cryptography
public import MobileAuth
import OpenPGP
public import PINProtection
public import ReferenceProtocol
public import Secrets

/// A person who is logged in: a user access token, in memory only.
public struct UserSession: Sendable, Equatable {
  public let account: AccountID
  /// When the server ends it.
  public let until: Moment
  let accessToken: String
}

/// A PIN change that the server has begun: what the new PIN will be put around.
public struct PINChangeTicket: Sendable {
  let profile: String
  let id: String
  let token: SecretBytes
  let session: UserSession
  /// What the new PIN must be like.
  public let policy: PINPolicy
}

extension ReferenceTokenServer {
  /// Times a call is repeated whose repeat is the same attempt, and the pauses between.
  static let pauses: [Duration] = [.milliseconds(500), .seconds(1), .seconds(2)]

  /// How many digits the account's PIN has.
  /// - Throws: `.refused` for an account without a PIN.
  public func pinLength(of account: AccountID) async throws(TokenServerFault) -> Int {
    try pin(of: await settled(account)).current.length
  }

  /// "Authenticate user": a user access token for whoever types the right PIN.
  /// - Throws: `.pinIncorrect`, `.userDeregistered`.
  public func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerFault) -> UserSession {
    let account = try await settled(account)
    return try await logIn(account, with: knowledgeKey(of: account, typed: pin))
  }

  /// Tells the server that the session is over; here it is over already.
  public func logOut(_ session: UserSession) async throws(TokenServerFault) {
    try await client.revoke(session.accessToken)
  }

  /// The first half of a PIN change: proves the present PIN and gets a new refresh token for the new one.
  /// - Parameter session: of the account, or nil to log in on the way.
  /// - Throws: `.pinIncorrect`, `.userDeregistered`.
  public func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerFault) -> PINChangeTicket {
    let account = try await settled(account)
    let configuration = try DeviceClient.decode(DeviceConfiguration.self, try await client.call(.get, "/configuration"))
    guard let description = configuration.pinPolicy else {
      throw .configurationInvalid("it has no PIN policy any more")
    }
    let policy = try PINPolicy(description)
    let key = try knowledgeKey(of: account, typed: pin)
    let user: UserSession
    if let session { user = session } else { user = try await logIn(account, with: key) }
    let ephemeral = try Self.ephemeralKey()
    let path = "/profiles/\(account.profile)/pin-changes"
    let request = PINChangeRequest(
      assertion: try await client.assertion(by: key, for: account.profile, path: path),
      ephemeralCertificate: ephemeral.certificate.bytes.base64)
    let body = JSON.encode(request)
    let reply = try await repeating { [client] () async throws(TokenServerFault) in
      try await client.call(.post, path, body: body, as: .user(user.accessToken))
    }
    let change = try DeviceClient.decode(PINChange.self, reply)
    let token = try Self.openToken(change.sealedToken, by: account.serverCertificate, with: ephemeral)
    return PINChangeTicket(profile: account.profile, id: change.changeID, token: token, session: user, policy: policy)
  }

  /// The second half. When it throws `.unreachable` the server decides which PIN is the right one, and the token asks
  /// it as soon as it can.
  /// - Returns: the session the change was made in.
  public func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession {
    guard var known = account(profile: ticket.profile)?.pin else { throw TokenServerFault.notEnrolled }
    let token = try ProtectedToken(ticket.token, under: pin, binding: pinBinding, parameters: parameters)
    known.next = AccountPIN.Change(id: ticket.id, token: token)
    // Durable before the server makes it the only one that counts.
    try keep(known, of: ticket.profile)
    let key = try KnowledgeKey(refreshToken: ticket.token, clientID: clientID, profileID: ticket.profile)
    let path = "/profiles/\(ticket.profile)/pin-changes/\(ticket.id)/commit"
    let body = JSON.encode(
      PINChangeCommit(assertion: try await client.assertion(by: key, for: ticket.profile, path: path, nonce: ticket.id))
    )
    _ = try await repeating { [client] () async throws(TokenServerFault) in
      try await client.call(.post, path, body: body)
    }
    try keep(AccountPIN(token), of: ticket.profile)
    return ticket.session
  }

  /// The account, once it is known which PIN counts. After a cut between the two halves of a change the server says
  /// which of the two wrapped tokens it is; neither is thrown away before it has said that it will never be the other.
  func settled(_ id: AccountID) async throws(TokenServerFault) -> Account {
    let account = try self.account(id)
    guard let next = account.pin?.next else { return account }
    let reply = try await client.call(.get, "/profiles/\(account.profile)/pin-changes/\(next.id)")
    let state = try DeviceClient.decode(PINChangeStatus.self, reply).state
    // Another change may have begun while the server was asked about this one.
    guard let pin = self.account(profile: account.profile)?.pin, pin.next?.id == next.id else {
      return try self.account(id)
    }
    do {
      switch state {
      case .pending: return account
      case .committed: try keep(AccountPIN(next.token), of: account.profile)
      case .void: try keep(AccountPIN(pin.current), of: account.profile)
      }
    } catch { throw .refused("\(error)") }
    return try self.account(id)
  }

  private func logIn(_ account: Account, with key: KnowledgeKey) async throws(TokenServerFault) -> UserSession {
    let asked = timekeeper.now
    let form = [
      ("profile_id", account.profile),
      (
        "assertion",
        try await client.assertion(
          by: key, for: account.profile, audience: ServerMetadata(issuer: client.issuer).tokenEndpoint)
      ),
    ]
    let response = try await repeating { [client] () async throws(TokenServerFault) in
      try await client.requestToken(grant: Grant.jwtBearer, form: form, about: account.profile)
    }
    guard response.scope == .user, response.profileID == account.profile else {
      throw .unreachable("the token server logged somebody else in")
    }
    let lifetime = Duration.seconds(max(0, min(response.expiresIn, 86_400)))
    return UserSession(account: account.id, until: asked + lifetime, accessToken: response.accessToken)
  }

  /// `KK'` of whatever was typed. Costs a key derivation, and cannot tell whether it was right.
  func knowledgeKey(of account: Account, typed pin: PIN) throws(TokenServerFault) -> KnowledgeKey {
    let wrapped = try self.pin(of: account).current.wrapped
    do {
      return try KnowledgeKey(
        refreshToken: try wrapped.unwrap(with: pin, binding: pinBinding), clientID: clientID,
        profileID: account.profile)
    } catch { throw .refused("the PIN record of account \(account.id) cannot be used: \(error)") }
  }

  private func pin(of account: Account) throws(TokenServerFault) -> AccountPIN {
    guard let pin = account.pin else { throw .refused("account \(account.id) has no PIN") }
    return pin
  }

  private func keep(_ pin: AccountPIN, of profile: String) throws(CustodyFault) {
    guard var record = try registry.accounts().first(where: { $0.server == id && $0.profile == profile }) else {
      throw .unknown("account with profile \(profile)")
    }
    var credentials = try AccountCredentials(record)
    credentials.pin = pin
    record.secrets = credentials.encoded()
    try registry.put(record, nil)
    set(pin, of: profile)
  }

  private func repeating<Result: Sendable>(
    _ call: @Sendable () async throws(TokenServerFault) -> Result
  ) async throws(TokenServerFault) -> Result {
    for pause in Self.pauses {
      do { return try await call() } catch {
        guard error.effect == .retry, !Task.isCancelled else { throw error }
        try? await timekeeper.sleep(until: timekeeper.now + pause)
      }
    }
    return try await call()
  }
}

extension ReferenceTokenServer {
  /// An OpenPGP key that exists in memory alone, for one exchange: recorded traffic and a stolen card together do not
  /// give the refresh token away.
  static func ephemeralKey() throws(TokenServerFault) -> OpenPGPKey {
    do { return try OpenPGPKey.generate(userID: "ephemeral") } catch { throw .refused("making a key failed: \(error)") }
  }

  /// - Parameter sealed: Base64.
  static func openToken(
    _ sealed: String, by server: OpenPGPCertificate, with ephemeral: OpenPGPKey
  ) throws(TokenServerFault) -> SecretBytes {
    guard let message = bytes(base64: sealed), var opened = try? ephemeral.open(message, from: server, limit: 4096)
    else { throw .unreachable("the refresh token is not sealed for us by the token server") }
    defer { cleanse(&opened) }
    guard opened.count == 32 else { throw .unreachable("a refresh token of \(opened.count) bytes") }
    return SecretBytes(copying: opened)
  }
}

extension PINPolicy {
  /// - Throws: `.configurationInvalid` for a policy nobody could keep.
  public init(_ description: PINPolicyDescription) throws(TokenServerFault) {
    do {
      try self.init(
        length: description.length, maxRepeats: description.maxRepeats, sequencesAllowed: description.sequencesAllowed,
        blockList: description.blockList)
    } catch { throw .configurationInvalid("its PIN policy is none: \(error)") }
  }
}
