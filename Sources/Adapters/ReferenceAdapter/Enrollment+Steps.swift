// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import HTTP
import MobileAuth
import OpenPGP
import PINProtection
import ReferenceProtocol

/// The steps of an enrollment at a server where this device is registered.
extension Enrollment {
  /// Changes the account as it is stored now: since the last step another command can have renamed it, or changed its
  /// origins, which stays.
  /// - Parameters:
  ///   - kind: that of the entry in the audit chain; nil for none.
  ///   - body: called again after a concurrent change.
  /// - Returns: the stored account.
  /// - Throws: `.notFound` if the account was removed meanwhile.
  func change(
    _ account: AccountRecord, noting kind: AuditEntry.Kind? = nil, _ detail: String = "",
    _ body: (inout AccountRecord) throws -> Void
  ) throws -> AccountRecord {
    try registry.update(
      profileOf: account,
      noting: { known in kind.map { environment.auditEntry($0, account: known.id, detail: detail) } }, body)
  }

  /// Activates the account with the code, and lets the user choose a PIN if the server requires one.
  /// - Returns: the authority for the calls of the next steps.
  func activate(
    _ account: inout AccountRecord, _ credentials: inout AccountCredentials, with code: ActivationCode,
    _ configuration: DeviceConfiguration, _ client: DeviceClient
  ) async throws -> DeviceClient.Authority {
    progress("activating the account")
    let ephemeral = configuration.pinRequired ? try ReferenceServerClient.ephemeralKey() : nil
    let activation = try await redeem(code, for: account, ephemeral, client)
    account.displayName = activation.userID?.sanitized
    let user = DeviceClient.Authority.user(activation.accessToken)
    if let ephemeral, let description = configuration.pinPolicy {
      let offer = try PINOffer(activation, to: ephemeral)
      try await setPIN(offer, PINPolicy(description), of: &account, &credentials, client, user)
    }
    return user
  }

  /// Exchanges the OpenPGP keys, stores the server's, and proves that they are stored.
  func exchangeKeys(
    of account: inout AccountRecord, _ credentials: inout AccountCredentials, _ client: DeviceClient,
    _ user: DeviceClient.Authority
  ) async throws {
    progress("exchanging keys")
    let path = "/profiles/\(account.profile)/mobile-auth"
    let exchange = KeyExchangeRequest(openPGPCertificate: credentials.key.certificate.bytes.base64)
    let keys = try DeviceClient.decode(
      KeyExchangeResponse.self, try await client.call(.put, path, body: JSON.encode(exchange), as: user))
    let certificate = try Self.certificate(keys)
    credentials.serverCertificate = certificate
    account = try change(account) {
      var kept = try AccountCredentials(remainderOf: $0, or: credentials.key)
      (kept.key, kept.serverCertificate) = (credentials.key, certificate)
      $0 = kept.stored(in: $0)
      ($0.enrollment, $0.displayName) = (account.enrollment, account.displayName)
    }
    let proof = KeyAcknowledgementContent(
      clientID: client.clientID ?? "", profileID: account.profile, keyID: keys.keyID)
    let sealed = try credentials.key.seal(JSON.encode(proof), to: certificate)
    _ = try await client.call(
      .post, path + "/ack", body: JSON.encode(KeyAcknowledgement(proof: sealed.base64)), as: user)
  }

  /// Enrolls the account for push, its last step.
  /// - Parameter origins: the account's `allowedOrigins`; nil leaves them.
  /// - Returns: the active account.
  func enrollForPush(
    _ account: AccountRecord, over transport: DeviceConfiguration.Transport, allowing origins: [String]? = nil,
    _ client: DeviceClient, _ user: DeviceClient.Authority
  ) async throws -> AccountRecord {
    progress("enrolling for push")
    _ = try await client.call(
      .put, "/profiles/\(account.profile)/push", body: JSON.encode(PushEnrollmentRequest(transport: transport)),
      as: user)
    return try change(account, noting: .enrolled, "at \(account.server), profile \(account.profile)") {
      ($0.stage, $0.enrollment) = (.active, account.enrollment)
      if let origins { $0.allowedOrigins = origins }
    }
  }

  /// - Parameter ephemeral: the key to which the refresh token is encrypted, if a PIN is required.
  /// - Returns: the response with a user access token for the account.
  private func redeem(
    _ code: ActivationCode, for account: AccountRecord, _ ephemeral: OpenPGPKey?, _ client: DeviceClient
  ) async throws -> AccessTokenResponse {
    let certificate = ephemeral.map { [("ephemeral_certificate", $0.certificate.bytes.base64)] } ?? []
    do {
      let token = try await client.requestToken(
        grant: Grant.preAuthorizedCode,
        form: [("pre-authorized_code", code.digits), ("profile_id", account.profile)] + certificate)
      guard token.scope == .user, token.profileID == account.profile else {
        throw TokenServerError.unreachable("the token server activated another profile")
      }
      return token
    } catch let fault as TokenServerError {
      // A refused code cannot activate these keys later.
      if case .refused = fault {
        try registry.wipe(
          account: account.id, if: account.enrollment,
          environment.auditEntry(.removed, account: account.id, detail: "its activation was refused"))
      }
      throw fault
    }
  }

  private static func certificate(_ keys: KeyExchangeResponse) throws -> OpenPGPCertificate {
    guard let binary = bytes(base64: keys.serverCertificate),
      let certificate = try? OpenPGPCertificate(parsing: binary), certificate.fingerprint == keys.serverFingerprint
    else { throw TokenServerError.configurationInvalid("its OpenPGP certificate cannot be used") }
    return certificate
  }
}
