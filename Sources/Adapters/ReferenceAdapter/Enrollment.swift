// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import DisplayText
package import HTTP
package import MobileAuth
import OpenPGP
package import PINProtection
package import ReferenceProtocol
package import Secrets
import ServerBackends

/// Enrolls one account: device registration, activation, key exchange and push. Each step is durable before the next
/// request is sent, and the same activation code resumes an enrollment that a crash or power loss interrupted.
package struct Enrollment: Sendable {
  let registry: any SharedEnrollmentRegistry & StateStore
  private let makeHTTPTransport: @Sendable (ServerTrust) -> any HTTPTransport
  let environment: TokenEnvironment
  let pinSetup: PINSetup?
  private let deviceName: String
  private let boardSerial: String?
  let progress: @Sendable (String) -> Void

  /// Lets the user choose a PIN, and protects it on this device.
  package struct PINSetup: Sendable {
    let binding: SecretBytes
    let parameters: Scrypt.Parameters
    let choose: @Sendable (PINPolicy) async throws -> PIN

    /// - Parameters:
    ///   - binding: `Vault.pinBinding`.
    ///   - choose: asks the user until the PIN satisfies the policy.
    package init(
      binding: SecretBytes, parameters: Scrypt.Parameters, choose: @escaping @Sendable (PINPolicy) async throws -> PIN
    ) {
      self.binding = binding
      self.parameters = parameters
      self.choose = choose
    }
  }

  /// - Parameters:
  ///   - pinPrompter: lets the user choose a PIN; nil without a keypad. Servers that require a PIN are then refused.
  ///   - deviceName: what the server's administrators and portals call this device. One that the server would refuse
  ///     counts as nil: "Approval Token".
  ///   - boardSerial: the serial number of the board, of at most 64 printable characters.
  ///   - progress: called with a progress message for the waiting user.
  package init(
    registry: any SharedEnrollmentRegistry & StateStore, in environment: TokenEnvironment, pinPrompter: PINSetup?,
    deviceName: String? = nil, boardSerial: String? = nil, progress: @escaping @Sendable (String) -> Void,
    makeHTTPTransport: @escaping @Sendable (ServerTrust) -> any HTTPTransport
  ) {
    self.registry = registry
    self.environment = environment
    self.pinSetup = pinPrompter
    self.deviceName = deviceName.flatMap(acceptable) ?? "Approval Token"
    self.boardSerial = boardSerial
    self.progress = progress
    self.makeHTTPTransport = makeHTTPTransport
  }

  /// Enrolls the account of an activation URI, or resumes its enrollment.
  /// - Parameters:
  ///   - name: the user's name for the account; nil uses the server's profile ID.
  ///   - trust: how the server's certificate is verified, with the URI's pins. Without pins, those of earlier
  ///     enrollments at the server stay, unless `trust` drops them, which is recorded.
  ///   - origins: the account's `allowedOrigins`.
  /// - Throws: `TokenServerError`, `StateStoreError`.
  package func enroll(
    _ uri: ActivationURI, name: String?, trust: ServerTrust, capabilities: ApprovalCapabilities,
    origins: [String] = []
  ) async throws -> AccountRecord {
    try requireUnused(name)
    let (server, configuration, client) = try await connect(
      to: uri.server, with: uri.code.digits, trust, capabilities, requires: check)
    var (account, credentials) = try self.account(for: uri, at: server, name: name)
    let user = try await activate(&account, &credentials, with: uri.code, configuration, client)
    try await exchangeKeys(of: &account, &credentials, client, user)
    return try await enrollForPush(
      account, over: configuration.transports.first ?? .sse, allowing: origins, client, user)
  }

  /// Registers this device with a fleet token, before it has a user. Does nothing if it is registered.
  /// - Returns: the stored server.
  /// - Throws: `TokenServerError`, `StateStoreError`.
  package func register(
    _ uri: FleetURI, trust: ServerTrust, capabilities: ApprovalCapabilities
  ) async throws -> TokenServerID {
    try await connect(to: uri.server, with: uri.token, trust, capabilities) { configuration throws(TokenServerError) in
      try configuration.checkProtocolVersions()
    }.0.id
  }

  /// Registers this device unless it is registered, and stores the server with its pins.
  /// - Parameters:
  ///   - credential: an activation code or a fleet token.
  ///   - check: throws if this token cannot be used with the server's requirements.
  private func connect(
    to url: String, with credential: String, _ trust: ServerTrust, _ capabilities: ApprovalCapabilities,
    requires check: (DeviceConfiguration) throws(TokenServerError) -> Void
  ) async throws -> (TokenServerRecord, DeviceConfiguration, DeviceClient) {
    let former = try known(at: url).map { try DeviceCredentials($0).pins } ?? []
    let trust = trust.keeping(pins: former).limited(to: [url])
    var (server, device) = try registration(at: url, trust.pins)
    let http = makeHTTPTransport(trust)
    let isRegistered = device.clientID != nil
    if !isRegistered { try await register(&device, at: &server, with: credential, capabilities, over: http) }
    let client = DeviceClient(
      issuer: url, clientID: device.clientID, key: device.deviceKey, http: http, in: environment,
      revocations: try revocations(by: server, device))
    // Read before any key is made or the code is used: a wrong server, or one with unsupported requirements, changes
    // nothing here. Only the server known from an earlier registration may report that this device was removed.
    let mayBeGone = try isRegistered && isKnown(server.id, by: trust.pins)
    let mayBeReplaced = try mayBeGone && Self.isUnused(server.id, by: registry.accounts())
    guard
      let configuration = try await configuration(from: client, nilIfGone: mayBeGone, nilIfRefused: mayBeReplaced)
    else {
      // The server removed this device earlier, or a proxy between them registered another key: register again.
      let loss = EnrollmentRevocation(.deviceDeregistered, at: server.id, nil, of: Enrollments(server, []))
      _ = try loss?.apply(on: registry, in: environment)
      return try await connect(to: url, with: credential, trust, capabilities, requires: check)
    }
    try check(configuration)
    try store(server, without: trust.pins.isEmpty ? former : [])
    return (server, configuration, client)
  }

  /// Whether no account needs this device's registration at the server. One that must be enrolled again does: a
  /// refusal proves nothing, and its PIN would be deleted with the registration.
  static func isUnused(_ server: TokenServerID, by accounts: [AccountRecord]) -> Bool {
    accounts.allSatisfy { $0.server != server || $0.stage == .enrolling }
  }

  /// - Throws: `.alreadyEnrolled` if an active account has the name.
  private func requireUnused(_ name: String?) throws {
    if let name, try registry.accounts().contains(where: { $0.id.text == name && $0.stage == .active }) {
      throw TokenServerError.alreadyEnrolled("there is an account \"\(name)\" already; choose another name")
    }
  }

  /// Registers this device, and stores the client ID that the server gives it.
  private func register(
    _ device: inout DeviceCredentials, at server: inout TokenServerRecord, with credential: String,
    _ capabilities: ApprovalCapabilities, over http: any HTTPTransport
  ) async throws {
    progress("registering this device with \(server.id)")
    let client = DeviceClient(issuer: server.url, clientID: nil, key: device.deviceKey, http: http, in: environment)
    let registration = RegistrationRequest(
      clientName: deviceName, softwareID: ReferenceServerClient.software.id,
      softwareVersion: ReferenceServerClient.software.version, key: JWK(device.deviceKey.publicKey),
      capabilities: capabilities, boardSerial: boardSerial)
    device.clientID = try await client.register(registration, code: credential).clientID
    server.secrets = try device.encoded()
    server.registration = environment.makeEnrollmentID()
    try registry.put(server)
  }

  /// - Throws: `.outdated` or `.configurationInvalid` if the server requires what this token does not have.
  private func check(_ configuration: DeviceConfiguration) throws(TokenServerError) {
    try configuration.checkProtocolVersions()
    if configuration.pinRequired, pinSetup == nil {
      throw .configurationInvalid(
        "it requires a PIN: enroll while `approval-token serve` runs on a board with a keypad, to type the PIN")
    }
  }

  /// Stores the server with its pins, which the connection has verified.
  /// - Parameter dropped: the former pins, if the server has none any longer.
  private func store(_ server: TokenServerRecord, without dropped: [String]) throws {
    try registry.put(server)
    guard !dropped.isEmpty else { return }
    try registry.record(
      environment.auditEntry(.pinsDropped, detail: "\(server.id): \(dropped.joined(separator: ", "))"))
  }

  /// A server of another kind may have the same URL.
  private func known(at url: String) throws(StateStoreError) -> TokenServerRecord? {
    try registry.servers().first { $0.url == url && $0.kind == ReferenceServerClient.kind }
  }

  /// Returns the server's record. A new device key is stored before the server receives it, without the pins: those of
  /// an enrollment that did not reach the server would apply to later ones.
  private func registration(
    at url: String, _ pins: [String]
  ) throws -> (TokenServerRecord, DeviceCredentials) {
    if var known = try self.known(at: url) {
      var credentials = try DeviceCredentials(known)
      if credentials.pins != pins {
        // The URI is trusted to set pins; they replace the stored ones when the server was reached with them.
        credentials.pins = pins
        known.secrets = try credentials.encoded()
      }
      return (known, credentials)
    }
    let id = TokenServerID(String(url.dropFirst("https://".count)))
    try registry.requireNoOtherKind(of: id, than: ReferenceServerClient.kind)
    var credentials = DeviceCredentials(deviceKey: try P256PrivateKey(), clientID: nil, pins: [])
    let record = TokenServerRecord(
      id: id, kind: ReferenceServerClient.kind, url: url, registration: .unregistered,
      secrets: try credentials.encoded())
    try registry.put(record)
    credentials.pins = pins
    return (record, credentials)
  }

  /// Returns the check of removals that the server reports, with the keys of the accounts there.
  private func revocations(by server: TokenServerRecord, _ device: DeviceCredentials) throws -> Revocations {
    let accounts = try ReferenceServerClient.active(registry.accounts().filter { $0.server == server.id })
    let revocations = Revocations(in: environment)
    revocations.use { [issuer = server.url, clientID = device.clientID ?? ""] in
      ReferenceServerClient.provenRevocations(in: $0, of: Array(accounts.values), issuer: issuer, clientID: clientID)
    }
    return revocations
  }

  /// - Returns: nil if the device is no longer registered: at once if the server has signed that, otherwise after a
  ///   second query one minute later. Also nil, with `nilIfRefused`, if the server does not accept this device's key.
  private func configuration(
    from client: DeviceClient, nilIfGone: Bool, nilIfRefused: Bool
  ) async throws(TokenServerError) -> DeviceConfiguration? {
    do {
      return try DeviceClient.decode(DeviceConfiguration.self, try await client.call(.get, "/configuration"))
    } catch {
      guard nilIfGone else { throw error }
      if error == .deviceDeregistered { return nil }
      // Not by the error: 10001 also says that a server is too old.
      if nilIfRefused, await client.areCredentialsRefused { return nil }
      guard case .unconfirmedRemoval = error else { throw error }
    }
    progress("the server reports without proof that it has removed this device; querying it again in a minute")
    do { try await environment.sleep(for: Revocations.pause) } catch {
      throw .unreachable("the enrollment was canceled")
    }
    do {
      return try DeviceClient.decode(
        DeviceConfiguration.self, try await client.call(.get, "/configuration", reconnecting: true))
    } catch {
      if error == .deviceDeregistered { return nil }
      throw error
    }
  }

  private func isKnown(_ server: TokenServerID, by pins: [String]) throws -> Bool {
    try registry.servers().contains { try $0.id == server && ReferenceServerClient.pins(of: $0) == pins }
  }

  private func account(
    for uri: ActivationURI, at server: TokenServerRecord, name: String?
  ) throws -> (AccountRecord, AccountCredentials) {
    let digest = SHA256.hash(Array(uri.code.digits.utf8))
    for record in try registry.accounts() where record.server == server.id && record.stage == .enrolling {
      let credentials = try AccountCredentials(record)
      if credentials.codeDigest == digest { return (record, credentials) }
      // Started with another code and never finished: that code is used or expired.
      try registry.wipe(
        account: record.id,
        environment.auditEntry(.removed, account: record.id, detail: "its enrollment was never finished"))
    }
    progress("generating keys")
    let profile = Self.randomProfile()
    let credentials = AccountCredentials(
      key: try OpenPGPKey.generate(userID: "approval-token \(profile)"), serverCertificate: nil, codeDigest: digest)
    let record = credentials.stored(
      in: AccountRecord(
        id: AccountID(name ?? profile), server: server.id, profile: profile, stage: .enrolling,
        enrollment: environment.makeEnrollmentID(), secrets: SecretBytes(copying: [])))
    try registry.put(record, nil)
    return (record, credentials)
  }

  /// Six characters of `[A-Z0-9]`, uniformly distributed: bytes of 252 and above are rejected.
  private static func randomProfile() -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    var profile = ""
    while profile.count < 6 {
      for byte in Random.bytes(8) where byte < 252 && profile.count < 6 { profile.append(letters[Int(byte) % 36]) }
    }
    return profile
  }
}

/// The limits of the token server for `client_name`.
private func acceptable(_ name: String) -> String? {
  (1...128).contains(name.utf8.count) && name.isSafeName ? name : nil
}
