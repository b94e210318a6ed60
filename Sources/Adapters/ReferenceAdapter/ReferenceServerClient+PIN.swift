// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import HTTP
package import MobileAuth
import OpenPGP
package import PINProtection
package import ReferenceProtocol
package import Secrets
package import ServerBackends

extension ReferenceServerClient {
  /// The pauses between attempts of a call whose repeats count as one PIN attempt.
  static let pauses: [Duration] = [.milliseconds(500), .seconds(1), .seconds(2)]

  /// The number of digits of the account's PIN.
  /// - Throws: `.refused` for an account without a PIN.
  package func pinLength(of account: AccountID) async throws(TokenServerError) -> Int {
    try pin(of: await confirmedPINChange(account)).current.length
  }

  /// Logs in with a PIN. Returns a session with a user access token.
  /// - Throws: `.pinIncorrect`, `.userDeregistered`.
  package func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerError) -> UserSession {
    let account = try await confirmedPINChange(account)
    let opened = try open(account, typed: pin)
    let session = try await logIn(account, with: opened.key)
    unlock(opened, of: account)
    return session
  }

  /// Notifies the server that the session ended. The local session has already ended.
  package func logOut(_ session: UserSession) async throws(TokenServerError) {
    try await client.revoke(session.accessToken)
  }

  /// Starts a PIN change: proves the current PIN and gets a refresh token for the new PIN.
  /// - Parameter session: a session of the account; nil logs in first.
  /// - Throws: `.pinIncorrect`, `.userDeregistered`.
  package func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerError) -> PINChangeTicket {
    let account = try await confirmedPINChange(account)
    let configuration = try DeviceClient.decode(DeviceConfiguration.self, try await client.call(.get, "/configuration"))
    guard let description = configuration.pinPolicy else {
      throw .configurationInvalid("it no longer has a PIN policy")
    }
    let policy = try PINPolicy(description)
    let opened = try open(account, typed: pin)
    let key = opened.key
    let user: UserSession
    if let session { user = session } else { user = try await logIn(account, with: key) }
    let ephemeral = try Self.ephemeralKey()
    let path = "/profiles/\(account.profile)/pin-changes"
    let request = PINChangeRequest(
      assertion: try await client.assertion(by: key, for: account.profile, path: path),
      ephemeralCertificate: ephemeral.certificate.bytes.base64)
    let body = JSON.encode(request)
    let reply = try await attempting { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body, as: .user(user.accessToken))
    }
    // Fingerprints are usable from now on, also if the user chooses no other PIN.
    unlock(opened, of: account)
    let change = try DeviceClient.decode(PINChange.self, reply)
    // It becomes part of URLs, and is stored.
    guard change.changeID.isUUID else { throw .unreachable("the token server's \"change_id\" is no UUID") }
    let token = try Self.openToken(change.sealedToken, by: account.serverCertificate, with: ephemeral)
    return PINChangeTicket(profile: account.profile, id: change.changeID, token: token, session: user, policy: policy)
  }

  /// Completes a PIN change. After `.unreachable`, only the server knows which PIN is valid; the token queries it when
  /// the server is reachable.
  /// - Returns: the session the change was made in.
  package func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession {
    guard var known = account(profile: ticket.profile)?.pin else { throw TokenServerError.notEnrolled }
    let token = try ProtectedToken(ticket.token, under: pin, binding: pinBinding, parameters: parameters)
    known.next = AccountPIN.Change(id: ticket.id, token: token)
    // Stored before the server makes it the only valid token.
    try store(known, of: ticket.profile)
    let key = try KnowledgeKey(refreshToken: ticket.token, clientID: clientID, profileID: ticket.profile)
    let path = "/profiles/\(ticket.profile)/pin-changes/\(ticket.id)/commit"
    let body = JSON.encode(
      PINChangeCommit(assertion: try await client.assertion(by: key, for: ticket.profile, path: path, nonce: ticket.id))
    )
    _ = try await repeating { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body)
    }
    for authenticator in try replacePIN(with: token, of: ticket.profile) {
      // The server is notified only for its list: without its key, the authenticator is of no use.
      try? await endRegistration(of: authenticator, account(ticket.session.account), in: ticket.session)
    }
    return ticket.session
  }

  /// Returns the account after resolving an interrupted PIN change. The server reports which of the two encrypted
  /// tokens is valid; neither is deleted before that.
  func confirmedPINChange(_ id: AccountID) async throws(TokenServerError) -> Account {
    let account = try self.account(id)
    guard let next = account.pin?.next else { return account }
    let reply = try await client.call(.get, "/profiles/\(account.profile)/pin-changes/\(next.id)")
    let state = try DeviceClient.decode(PINChangeStatus.self, reply).state
    // Another change may have started while the server was queried.
    guard let pin = self.account(profile: account.profile)?.pin, pin.next?.id == next.id else {
      return try self.account(id)
    }
    do {
      switch state {
      case .pending: return account
      case .committed: _ = try replacePIN(with: next.token, of: account.profile)
      case .void: try store(AccountPIN(pin.current), of: account.profile)
      }
    } catch { throw .refused("\(error)") }
    return try self.account(id)
  }

  private func logIn(_ account: Account, with key: KnowledgeKey) async throws(TokenServerError) -> UserSession {
    let assertion = try await client.assertion(
      by: key, for: account.profile, audience: ServerMetadata(issuer: client.issuer).tokenEndpoint)
    return try await requestSession(of: account, grant: Grant.jwtBearer, form: [("assertion", assertion)])
  }

  /// Requests a user access token. Repeating the same form counts as the same attempt.
  /// - Parameter authenticator: what proves the user.
  func requestSession(
    of account: Account, with authenticator: String = Authenticator.pinIdentifier, grant: String,
    form: [(String, String)]
  ) async throws(TokenServerError) -> UserSession {
    let asked = environment.now
    let form = [("profile_id", account.profile)] + form
    let response = try await attempting { [client] () async throws(TokenServerError) in
      try await client.requestToken(grant: grant, form: form, about: account.profile)
    }
    guard response.scope == .user, response.profileID == account.profile else {
      throw .unreachable("the token server logged in another user")
    }
    let lifetime = Duration.seconds(max(0, min(response.expiresIn, 86_400)))
    return UserSession(
      account: account.id, until: asked + lifetime, accessToken: response.accessToken, authenticator: authenticator,
      info: response.customInfo.map(AuthenticatorInfo.init))
  }

  /// Makes a call that counts as a PIN attempt: the counts in a message that came before are then outdated.
  func attempting<Result: Sendable>(
    _ call: @Sendable () async throws(TokenServerError) -> Result
  ) async throws(TokenServerError) -> Result {
    listedMessage.discard()
    defer { listedMessage.discard() }
    return try await repeating(call)
  }

  /// Decrypts everything that waits for the PIN, with one key derivation.
  func open(_ account: Account, typed pin: PIN) throws(TokenServerError) -> OpenedPIN {
    let wrapped = try self.pin(of: account).current.wrapped
    do {
      let tokens = try wrapped.unwrapAll(with: pin, binding: pinBinding)
      let key = try KnowledgeKey(refreshToken: tokens.token, clientID: clientID, profileID: account.profile)
      return OpenedPIN(key: key, tokens: tokens)
    } catch { throw .refused("the PIN record of account \(account.id) cannot be used: \(error)") }
  }

  private func pin(of account: Account) throws(TokenServerError) -> AccountPIN {
    guard let pin = account.pin else { throw .refused("account \(account.id) has no PIN") }
    return pin
  }

  private func store(_ pin: AccountPIN, of profile: String) throws(StateStoreError) {
    try change(profile) { $0.pin = pin }
  }

  /// Makes a call that may be repeated, until it arrives.
  func repeating<Result: Sendable>(
    _ call: @Sendable () async throws(TokenServerError) -> Result
  ) async throws(TokenServerError) -> Result {
    for pause in Self.pauses {
      do { return try await call() } catch {
        guard error.effect == .retry, !Task.isCancelled else { throw error }
        try? await environment.sleep(for: pause)
      }
    }
    return try await call()
  }
}

extension ReferenceServerClient {
  /// Creates an OpenPGP key in memory for one exchange, so that recorded traffic and a stolen SD card together do not
  /// reveal the refresh token.
  static func ephemeralKey() throws(TokenServerError) -> OpenPGPKey {
    do { return try OpenPGPKey.generate(userID: "ephemeral") } catch { throw .refused("no key generated: \(error)") }
  }

  /// Decrypts a refresh token and verifies the server's signature.
  /// - Parameter sealed: an OpenPGP message in Base64.
  static func openToken(
    _ sealed: String, by server: OpenPGPCertificate, with ephemeral: OpenPGPKey
  ) throws(TokenServerError) -> SecretBytes {
    guard let message = bytes(base64: sealed), var opened = try? ephemeral.open(message, from: server, limit: 4096)
    else { throw .unreachable("the refresh token is not encrypted to this device and signed by the token server") }
    defer { cleanse(&opened) }
    guard opened.count == 32 else { throw .unreachable("a refresh token of \(opened.count) bytes") }
    return SecretBytes(copying: opened)
  }
}

extension PINPolicy {
  /// - Throws: `.configurationInvalid` for a policy that no PIN can satisfy.
  package init(_ description: PINPolicyDescription) throws(TokenServerError) {
    do {
      try self.init(
        length: description.length, maxRepeats: description.maxRepeats, sequencesAllowed: description.sequencesAllowed,
        blockList: description.blockList)
    } catch { throw .configurationInvalid("its PIN policy is invalid: \(error)") }
  }
}
