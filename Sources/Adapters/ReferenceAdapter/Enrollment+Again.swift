// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import OpenPGP
import PINProtection
import ReferenceProtocol
import Secrets
import ServerBackends

extension Enrollment {
  /// Enrolls an account again whose keys were dropped, as the user who types the PIN: new keys and push; of an account
  /// that still has its keys, only push. Until the last step the enrollment can be repeated.
  /// - Parameter unlocked: gets the tokens of the account's fingerprints, after the server has found the PIN right.
  /// - Throws: `TokenServerError`, also `.pinIncorrect`; `StateStoreError`.
  func enrollAgain(
    _ account: AccountRecord, at server: TokenServerRecord, typing pin: PIN, binding: SecretBytes,
    over http: any HTTPTransport, unlocking unlocked: UnlockedTokens
  ) async throws -> AccountRecord {
    let device = try DeviceCredentials(server)
    guard let clientID = device.clientID else { throw StateStoreError.notFound(.registration(at: server.id)) }
    let client = DeviceClient(
      issuer: server.url, clientID: clientID, key: device.deviceKey, http: http, in: environment)
    let configuration = try DeviceClient.decode(DeviceConfiguration.self, try await client.call(.get, "/configuration"))
    try configuration.checkProtocolVersions()
    var account = account
    let newKey = try OpenPGPKey.generate(userID: "approval-token \(account.profile)")
    var credentials = try AccountCredentials(remainderOf: account, or: newKey)
    let user = try await logIn(account, credentials, clientID, typing: pin, binding: binding, client, unlocked)
    let transport = configuration.transports.first ?? .sse
    if credentials.serverCertificate != nil {
      account.enrollment = environment.makeEnrollmentID()
      do {
        return try await enrollForPush(account, over: transport, client, user)
      } catch TokenServerError.notEnrolled {
        // The server has removed the keys, too.
        credentials.replaceKeys(with: newKey)
      }
    }
    // The server may still have former keys, or those of an enrollment that was interrupted.
    _ = try await client.call(.delete, "/profiles/\(account.profile)/mobile-auth", as: user)
    account.enrollment = environment.makeEnrollmentID()
    try await exchangeKeys(of: &account, &credentials, client, user)
    return try await enrollForPush(account, over: transport, client, user)
  }

  private func logIn(
    _ account: AccountRecord, _ credentials: AccountCredentials, _ clientID: String, typing pin: PIN,
    binding: SecretBytes, _ client: DeviceClient, _ unlocked: UnlockedTokens
  ) async throws -> DeviceClient.Authority {
    guard let wrapped = credentials.pin?.current.wrapped else {
      throw TokenServerError.refused("account \(account.id) has no PIN")
    }
    let tokens = try wrapped.unwrapAll(with: pin, binding: binding)
    let key = try KnowledgeKey(refreshToken: tokens.token, clientID: clientID, profileID: account.profile)
    let assertion = try await client.assertion(
      by: key, for: account.profile, audience: ServerMetadata(issuer: client.issuer).tokenEndpoint)
    let response = try await client.requestToken(
      grant: Grant.jwtBearer, form: [("profile_id", account.profile), ("assertion", assertion)],
      about: account.profile)
    guard response.scope == .user, response.profileID == account.profile else {
      throw TokenServerError.unreachable("the token server logged in another user")
    }
    for stored in credentials.authenticators where stored.registration == nil {
      guard let token = stored.decrypted(by: tokens) else { continue }
      let name = UnlockedTokens.Name(
        server: account.server, profile: account.profile, authenticator: stored.identifier)
      unlocked.put(token, name, at: environment.now)
    }
    return .user(response.accessToken)
  }
}
