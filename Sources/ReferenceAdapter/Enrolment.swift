public import Courier
public import Cryptography
public import MobileAuth
import OpenPGP
public import PINProtection
public import ReferenceProtocol
public import Secrets

/// Enrols one account: device registration, activation, key exchange, push. Each step is durable before the next
/// request leaves, and the same activation code again goes on where a cut happened.
public struct Enrolment: Sendable {
  let registry: any EnrolmentRegistry & Custody
  private let makeCourier: @Sendable (ServerTrust) -> any Courier
  private let timekeeper: any Timekeeper
  let pinDesk: PINDesk?
  let progress: @Sendable (String) -> Void

  /// Where a new PIN comes from, and how it is kept.
  public struct PINDesk: Sendable {
    let binding: SecretBytes
    let parameters: Scrypt.Parameters
    let choose: @Sendable (PINPolicy) async throws -> PIN

    /// - Parameters:
    ///   - binding: `Vault.pinBinding`.
    ///   - choose: asks the person, until the PIN keeps the policy.
    public init(
      binding: SecretBytes, parameters: Scrypt.Parameters, choose: @escaping @Sendable (PINPolicy) async throws -> PIN
    ) {
      self.binding = binding
      self.parameters = parameters
      self.choose = choose
    }
  }

  /// - Parameters:
  ///   - pinDesk: nil where nobody can type a PIN: servers that want one are refused then.
  ///   - progress: told what is being done, for the person who waits.
  public init(
    registry: any EnrolmentRegistry & Custody, timekeeper: any Timekeeper, pinDesk: PINDesk?,
    progress: @escaping @Sendable (String) -> Void, makeCourier: @escaping @Sendable (ServerTrust) -> any Courier
  ) {
    self.registry = registry
    self.timekeeper = timekeeper
    self.pinDesk = pinDesk
    self.progress = progress
    self.makeCourier = makeCourier
  }

  /// - Parameters:
  ///   - name: what the person calls the account; the server's profile id if nil.
  ///   - trust: how the server is recognised; its pins are the URI's. Without any, those of earlier enrollments there stay,
  ///     unless it drops them, which is audited.
  /// - Throws: `TokenServerFault`, `CustodyFault`.
  public func enrol(
    _ uri: ActivationURI, name: String?, trust: ServerTrust, capabilities: ApprovalCapabilities
  ) async throws -> AccountRecord {
    if let name, try registry.accounts().contains(where: { $0.id.text == name && $0.stage == .active }) {
      throw TokenServerFault.alreadyEnrolled("there is an account \"\(name)\" already; choose another name")
    }
    let former = try registry.servers().first { $0.url == uri.server }.map { try DeviceCredentials($0).pins } ?? []
    let trust = trust.keeping(pins: former)
    var (server, device) = try registration(at: uri.server, trust.pins)
    let courier = makeCourier(trust)
    let isRegistered = device.clientID != nil
    if !isRegistered {
      progress("registering this device with \(server.id)")
      let client = DeviceClient(
        issuer: uri.server, clientID: nil, key: device.deviceKey, courier: courier, timekeeper: timekeeper)
      let registration = RegistrationRequest(
        clientName: "Approval Token", softwareID: ReferenceTokenServer.software.id,
        softwareVersion: ReferenceTokenServer.software.version, key: JWK(device.deviceKey.publicKey),
        capabilities: capabilities)
      device.clientID = try await client.register(registration, code: uri.code.digits).clientID
      server.secrets = try device.encoded()
      try registry.put(server)
    }
    let client = DeviceClient(
      issuer: uri.server, clientID: device.clientID, key: device.deviceKey, courier: courier, timekeeper: timekeeper,
      revocations: try revocations(by: server, device))
    // Asked before anything is made or spent: a server that is not the URI's, or wants what we cannot do, changes
    // nothing here.
    // Only the server that we knew may say that it removed us.
    let mayBeGone = try isRegistered && isKnown(server.id, by: trust.pins)
    guard let configuration = try await configuration(from: client, nilIfGone: mayBeGone) else {
      // It happened while nobody listened: begin anew.
      let entry = AuditEntry(
        .wiped, detail: "\(server.id): \(TokenServerFault.deviceDeregistered)",
        wallClockMilliseconds: timekeeper.wallClockMilliseconds)
      try registry.wipe(server: server.id, entry)
      return try await enrol(uri, name: name, trust: trust, capabilities: capabilities)
    }
    if configuration.pinRequired, pinDesk == nil {
      throw TokenServerFault.configurationInvalid(
        "it wants a PIN: enrol while `approval-token serve` runs on a board with a keypad, where the PIN is typed")
    }
    // It has shown that it is the one with these pins.
    try registry.put(server)
    if trust.pins.isEmpty, !former.isEmpty {
      try registry.record(
        AuditEntry(
          .pinsDropped, detail: "\(server.id): \(former.joined(separator: ", "))",
          wallClockMilliseconds: timekeeper.wallClockMilliseconds))
    }

    var (account, credentials) = try self.account(for: uri, at: server, name: name)
    progress("activating the account")
    let ephemeral = configuration.pinRequired ? try ReferenceTokenServer.ephemeralKey() : nil
    let activation = try await activate(account, with: uri.code, ephemeral, client)
    let user = DeviceClient.Authority.user(activation.accessToken)
    let base = "/profiles/\(account.profile)"
    if let ephemeral, let description = configuration.pinPolicy {
      let offer = try PINOffer(activation, to: ephemeral)
      try await setPIN(offer, PINPolicy(description), of: &account, &credentials, client, user)
    }

    progress("exchanging keys")
    let exchange = KeyExchangeRequest(openPGPCertificate: credentials.key.certificate.bytes.base64)
    let keys = try DeviceClient.decode(
      KeyExchangeResponse.self,
      try await client.call(.put, base + "/mobile-auth", body: JSON.encode(exchange), as: user))
    let certificate = try Self.certificate(keys)
    credentials.serverCertificate = certificate
    account.secrets = credentials.encoded()
    try registry.put(account, nil)
    let proof = KeyAcknowledgementContent(
      clientID: device.clientID ?? "", profileID: account.profile, keyID: keys.keyID)
    let sealed = try credentials.key.seal(JSON.encode(proof), to: certificate)
    _ = try await client.call(
      .post, base + "/mobile-auth/ack", body: JSON.encode(KeyAcknowledgement(proof: sealed.base64)), as: user)

    progress("enrolling for push")
    let transport = configuration.transports.first ?? .sse
    _ = try await client.call(
      .put, base + "/push", body: JSON.encode(PushEnrolmentRequest(transport: transport)), as: user)
    account.stage = .active
    try registry.put(account, entry(.enrolled, account.id, "at \(server.id), profile \(account.profile)"))
    return account
  }

  /// The server's record, with a device key that is on the card before the server hears of it.
  private func registration(
    at url: String, _ pins: [String]
  ) throws -> (TokenServerRecord, DeviceCredentials) {
    if var known = try registry.servers().first(where: { $0.url == url }) {
      var credentials = try DeviceCredentials(known)
      if credentials.pins != pins {
        // The person who brought the URI vouches for its pins; they replace those of an earlier enrolment once the
        // server was reached with them.
        credentials.pins = pins
        known.secrets = try credentials.encoded()
      }
      return (known, credentials)
    }
    let credentials = DeviceCredentials(deviceKey: try P256PrivateKey(), clientID: nil, pins: pins)
    let record = TokenServerRecord(
      id: TokenServerID(String(url.dropFirst("https://".count))), kind: ReferenceTokenServer.kind,
      url: url, secrets: try credentials.encoded())
    try registry.put(record)
    return (record, credentials)
  }

  /// The rule for what the server says about enrollments that are gone, with the keys of the accounts there.
  private func revocations(by server: TokenServerRecord, _ device: DeviceCredentials) throws -> Revocations {
    let accounts = try ReferenceTokenServer.active(registry.accounts().filter { $0.server == server.id })
    let revocations = Revocations(timekeeper)
    revocations.use { [issuer = server.url, clientID = device.clientID ?? ""] in
      ReferenceTokenServer.provenRevocations(in: $0, of: Array(accounts.values), issuer: issuer, clientID: clientID)
    }
    return revocations
  }

  /// - Returns: nil if the device is no longer registered: at once if the server has signed that, else after a second ask a
  ///   minute later.
  private func configuration(
    from client: DeviceClient, nilIfGone: Bool
  ) async throws(TokenServerFault) -> DeviceConfiguration? {
    do {
      return try DeviceClient.decode(DeviceConfiguration.self, try await client.call(.get, "/configuration"))
    } catch {
      guard nilIfGone else { throw error }
      if error == .deviceDeregistered { return nil }
      guard case .unconfirmedRemoval = error else { throw error }
    }
    progress("the server says without proof that it has removed this device; asking again in a minute")
    do { try await timekeeper.sleep(until: timekeeper.now + Revocations.pause) } catch {
      throw .unreachable("the enrollment was canceled")
    }
    do {
      return try DeviceClient.decode(
        DeviceConfiguration.self, try await client.call(.get, "/configuration", freshly: true))
    } catch {
      if error == .deviceDeregistered { return nil }
      throw error
    }
  }

  private func isKnown(_ server: TokenServerID, by pins: [String]) throws -> Bool {
    try registry.servers().contains { try $0.id == server && ReferenceTokenServer.pins(of: $0) == pins }
  }

  private func account(
    for uri: ActivationURI, at server: TokenServerRecord, name: String?
  ) throws -> (AccountRecord, AccountCredentials) {
    let digest = SHA256.hash(Array(uri.code.digits.utf8))
    for record in try registry.accounts() where record.server == server.id && record.stage == .enrolling {
      let credentials = try AccountCredentials(record)
      if credentials.codeDigest == digest { return (record, credentials) }
      // Begun with another code and never finished: that code is spent or expired.
      try registry.wipe(account: record.id, entry(.removed, record.id, "its enrolment was never finished"))
    }
    progress("making keys")
    let profile = Self.randomProfile()
    let credentials = AccountCredentials(
      key: try OpenPGPKey.generate(userID: "approval-token \(profile)"), serverCertificate: nil, codeDigest: digest)
    let record = AccountRecord(
      id: AccountID(name ?? profile), server: server.id, profile: profile, stage: .enrolling,
      secrets: credentials.encoded())
    try registry.put(record, nil)
    return (record, credentials)
  }

  /// - Parameter ephemeral: what the refresh token is sealed to, where there is a PIN.
  /// - Returns: with a user access token for the account.
  private func activate(
    _ account: AccountRecord, with code: ActivationCode, _ ephemeral: OpenPGPKey?, _ client: DeviceClient
  ) async throws -> AccessTokenResponse {
    let certificate = ephemeral.map { [("ephemeral_certificate", $0.certificate.bytes.base64)] } ?? []
    do {
      let token = try await client.requestToken(
        grant: Grant.preAuthorizedCode,
        form: [("pre-authorized_code", code.digits), ("profile_id", account.profile)] + certificate)
      guard token.scope == .user, token.profileID == account.profile else {
        throw TokenServerFault.unreachable("the token server activated something else")
      }
      return token
    } catch let fault as TokenServerFault {
      // A code that is refused will never be good for these keys.
      if case .refused = fault {
        try registry.wipe(account: account.id, entry(.removed, account.id, "its activation was refused"))
      }
      throw fault
    }
  }

  private static func certificate(_ keys: KeyExchangeResponse) throws -> OpenPGPCertificate {
    guard let binary = bytes(base64: keys.serverCertificate),
      let certificate = try? OpenPGPCertificate(parsing: binary), certificate.fingerprint == keys.serverFingerprint
    else { throw TokenServerFault.configurationInvalid("its OpenPGP certificate is not one we can use") }
    return certificate
  }

  /// Six of `[A-Z0-9]`, each uniform: bytes of 252 and above are thrown away.
  private static func randomProfile() -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    var profile = ""
    while profile.count < 6 {
      for byte in Random.bytes(8) where byte < 252 && profile.count < 6 { profile.append(letters[Int(byte) % 36]) }
    }
    return profile
  }

  func entry(_ kind: AuditEntry.Kind, _ account: AccountID, _ detail: String) -> AuditEntry {
    AuditEntry(kind, account: account, detail: detail, wallClockMilliseconds: timekeeper.wallClockMilliseconds)
  }
}
