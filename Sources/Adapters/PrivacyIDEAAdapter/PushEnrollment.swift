// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
package import HTTP
package import MobileAuth
import Secrets
import ServerBackends

/// Enrolls one push token. Key and URL are stored before the request is sent, so the same URL resumes an enrollment
/// that a crash or power loss interrupted. A URL for a known serial replaces its keys when the server has accepted the
/// new ones.
package struct PushEnrollment: Sendable {
  /// Settings that the operator of this token chooses.
  package struct Settings: Sendable, Equatable {
    /// The size of the token's RSA key in bits: 2048 to 4096.
    package var keyBits = 3072
    /// Whether to use P-256 instead of RSA if the server is eduMFA and supports it.
    package var prefersElliptic = false
    /// Whether the PIN replaces the biometric check that the server's administrator requires.
    package var takesPINForBiometric = false
    /// Whether a push gateway delivers hints to this token, which then needs an address.
    package var hasGatewayAddress = false
    /// Whether the user chooses to type a PIN before each approval, even if the server's administrator requires none.
    package var asksForPIN = false

    package init() {}
  }

  private let registry: any SharedEnrollmentRegistry & StateStore
  private let environment: TokenEnvironment
  private let settings: Settings
  private let pinPrompter: PINPrompter?
  private let progress: @Sendable (String) -> Void
  private let makeHTTPTransport: @Sendable (ServerTrust) -> any HTTPTransport
  /// Generates an RSA key of the given number of bits.
  var makeRSAKey: @Sendable (Int) throws(CryptographyError) -> RSAPrivateKey = {
    bits throws(CryptographyError) in try RSAPrivateKey(bits: bits)
  }

  /// - Parameters:
  ///   - pinPrompter: lets the user choose a PIN; nil without a keypad. Tokens that require a PIN are then refused.
  ///   - progress: called with a progress message for the waiting user.
  package init(
    registry: any SharedEnrollmentRegistry & StateStore, in environment: TokenEnvironment, settings: Settings,
    pinPrompter: PINPrompter?, progress: @escaping @Sendable (String) -> Void,
    makeHTTPTransport: @escaping @Sendable (ServerTrust) -> any HTTPTransport
  ) {
    self.registry = registry
    self.environment = environment
    self.settings = settings
    self.pinPrompter = pinPrompter
    self.progress = progress
    self.makeHTTPTransport = makeHTTPTransport
  }

  /// Enrolls the token of an enrollment URL, or resumes its enrollment.
  /// - Parameters:
  ///   - text: the URL as read from the QR code.
  ///   - name: the user's name for the account; nil uses the serial. An account that is enrolled again keeps its name.
  ///   - trust: how the server's certificate is verified.
  /// - Throws: `EnrollmentURI.ParseError`, `TokenServerError`, `StateStoreError`.
  package func enroll(_ text: String, name: String?, trust: ServerTrust) async throws -> AccountRecord {
    let uri = try EnrollmentURI(text)
    let known = try registry.servers().first { $0.url == uri.endpoint && $0.kind == PrivacyIDEA.kind }
    let trust = trust.keeping(pins: try known.map { try CertificatePins($0).pins } ?? []).limited(to: [uri.endpoint])
    try check(uri, trust)
    let server = try self.server(known, for: uri, trust)
    let (found, isNew) = try self.account(for: uri, at: server, name: name)
    var (account, credentials) = (found, try PushCredentials(found))
    let open = try await prepare(&account, &credentials, isNew: isNew, uri, text)
    // The user may have taken long to choose a PIN.
    try requireTime(for: open, account, credentials)
    let client = PushClient(
      endpoint: uri.endpoint, http: makeHTTPTransport(trust), clock: ResponseClock(in: environment))
    progress("enrolling \(uri.serial) at \(server.id)")
    let serverKey = try await exchangeKeys(uri, open.key, client, account, credentials)
    try keepTrust(of: server, trust.pins)
    try change(&account, &credentials, noting: .enrolled, "at \(server.id), serial \(uri.serial)") {
      // A PIN chosen before, or by a concurrent command, stays required: new keys do not remove it.
      $1.active = TokenKeys(device: open.key, server: serverKey, wantsPIN: $1.pinLength != nil)
      $1.next = nil
      $1.wantsBiometric = uri.unlock == .biometric
      $0.stage = .active
    }
    await probe(open.key, of: account.profile, client)
    return account
  }

  private func check(_ uri: EnrollmentURI, _ trust: ServerTrust) throws(TokenServerError) {
    guard uri.verifiesServer || !trust.pins.isEmpty || trust.authorityFile != nil else {
      throw .configurationInvalid(
        "it disables certificate verification (sslverify=0): name the file of its certificate authority, or a key pin")
    }
    guard uri.unlock != .biometric || settings.takesPINForBiometric else {
      throw .configurationInvalid(
        "it requires a fingerprint before each approval (app_force_unlock=biometric); `pin_for_biometric = true` in "
          + "[push] of the configuration allows the PIN instead, with which a finger can be registered")
    }
    guard pinPrompter != nil || !isPINWanted(by: uri) else {
      throw .configurationInvalid(
        "a PIN is required before each approval: enroll while `approval-token serve` runs on a board with a keypad")
    }
  }

  private func isPINWanted(by uri: EnrollmentURI) -> Bool { uri.unlock != nil || settings.asksForPIN }

  private func server(
    _ known: TokenServerRecord?, for uri: EnrollmentURI, _ trust: ServerTrust
  ) throws -> TokenServerRecord {
    if let known {
      // Other accounts there depend on the stored pins until the server was reached with the new ones.
      let isReliedOn = try registry.accounts().contains {
        $0.server == known.id && ($0.stage == .active || $0.profile != uri.serial)
      }
      if !isReliedOn { try keepTrust(of: known, trust.pins) }
      return known
    }
    let id = TokenServerID(String(uri.endpoint.dropFirst("https://".count)))
    try registry.requireNoOtherKind(of: id, than: PrivacyIDEA.kind)
    let record = TokenServerRecord(
      id: id, kind: PrivacyIDEA.kind, url: uri.endpoint, registration: .unregistered,
      secrets: CertificatePins(trust.pins).encoded)
    try registry.put(record)
    return record
  }

  /// Stores the pins of the URL, which is trusted to set them. Records pins that it removes.
  private func keepTrust(of server: TokenServerRecord, _ pins: [String]) throws {
    guard var known = try registry.servers().first(where: { $0.id == server.id }),
      try CertificatePins(known).pins != pins
    else { return }
    let former = try CertificatePins(known).pins
    known.secrets = CertificatePins(pins).encoded
    try registry.put(known)
    guard pins.isEmpty else { return }
    try registry.record(
      environment.auditEntry(.pinsDropped, detail: "\(server.id): \(former.joined(separator: ", "))"))
  }

  /// - Returns: the account as stored, or a new one.
  private func account(
    for uri: EnrollmentURI, at server: TokenServerRecord, name: String?
  ) throws -> (AccountRecord, isNew: Bool) {
    let known = try registry.accounts()
    if let record = known.first(where: { $0.server == server.id && $0.profile == uri.serial }) {
      return (record, false)
    }
    let id = AccountID(name ?? uri.serial)
    guard !known.contains(where: { $0.id == id }) else {
      throw TokenServerError.alreadyEnrolled("there is an account \"\(id)\" already; choose another name")
    }
    var record = AccountRecord(
      id: id, server: server.id, profile: uri.serial, stage: .enrolling,
      enrollment: environment.makeEnrollmentID(), secrets: SecretBytes(copying: []))
    record.displayName = uri.label.sanitized
    return (record, true)
  }

  /// Stores everything that must be durable before the request is sent.
  private func prepare(
    _ account: inout AccountRecord, _ credentials: inout PushCredentials, isNew: Bool, _ uri: EnrollmentURI,
    _ text: String
  ) async throws -> OpenEnrollment {
    let open = try begun(by: uri, account, credentials) ?? begin(uri, text, &account, &credentials, isNew: isNew)
    guard isPINWanted(by: uri), credentials.pinLength == nil, let pinPrompter else { return open }
    progress("choose a PIN: type it on the keypad, press Enter, and repeat it")
    let pin = try await pinPrompter.choose()
    account = try stored(account)
    guard account.pin == nil else {
      // A concurrent command has stored a PIN, which takes precedence.
      progress("another command has set a PIN for this account; that PIN is kept and this one is discarded")
      credentials = try PushCredentials(account)
      return open
    }
    try pinPrompter.store(account.id, pin)
    try change(&account, &credentials) { $1.pinLength = pin.count }
    return open
  }

  /// Changes the account and its credentials as they are stored now: since they were read, another command can have
  /// renamed or locked the account, or set its PIN, and authenticators that stand in can have come or gone. That stays.
  /// - Parameters:
  ///   - kind: that of the entry in the audit chain; nil for none.
  ///   - body: called again after a concurrent change.
  /// - Throws: `.notFound` if the account was removed meanwhile.
  private func change(
    _ account: inout AccountRecord, _ credentials: inout PushCredentials, noting kind: AuditEntry.Kind? = nil,
    _ detail: String = "", _ body: (inout AccountRecord, inout PushCredentials) -> Void
  ) throws {
    var kept = credentials
    account = try registry.update(
      profileOf: account,
      noting: { known in kind.map { environment.auditEntry($0, account: known.id, detail: detail) } }
    ) { changed in
      kept = try PushCredentials(changed)
      body(&changed, &kept)
      changed = try kept.stored(in: changed)
    }
    credentials = kept
  }

  /// The account as stored now.
  /// - Throws: `.notFound` if it was removed.
  private func stored(_ account: AccountRecord) throws(StateStoreError) -> AccountRecord {
    guard let found = try registry.accounts().first(where: { $0.hasProfile(of: account) }) else {
      throw .notFound(.account(account.id))
    }
    return found
  }

  /// The interrupted enrollment with this URL, if there is one.
  private func begun(
    by uri: EnrollmentURI, _ account: AccountRecord, _ credentials: PushCredentials
  ) throws -> OpenEnrollment? {
    guard let open = credentials.next, (try? EnrollmentURI(open.uri)) == uri else { return nil }
    try requireTime(for: open, account, credentials)
    return open
  }

  /// Ends an enrollment that has expired.
  private func requireTime(for open: OpenEnrollment, _ account: AccountRecord, _ credentials: PushCredentials) throws {
    guard let end = open.giveUpAt, environment.wallClockMilliseconds >= end else { return }
    try abandon(account, credentials, "it has expired")
    throw TokenServerError.refused("the enrollment URL has expired; ask for a new one")
  }

  private func begin(
    _ uri: EnrollmentURI, _ text: String, _ account: inout AccountRecord, _ credentials: inout PushCredentials,
    isNew: Bool
  ) throws -> OpenEnrollment {
    progress("generating a key")
    let now = environment.wallClockMilliseconds
    let open = OpenEnrollment(
      key: try makeKey(for: uri.flavor), uri: text,
      giveUpAt: ResponseClock.isPlausible(now) ? now + uri.timeToLive.milliseconds : nil)
    // From now on the server may refuse the former keys because it knows the new ones: that must not delete these.
    let enrollment = environment.makeEnrollmentID()
    guard isNew else {
      try change(&account, &credentials) { ($0.enrollment, $1.next) = (enrollment, open) }
      return open
    }
    (account.enrollment, credentials.next) = (enrollment, open)
    account = try credentials.stored(in: account)
    try registry.put(account, nil)
    return open
  }

  private func makeKey(for flavor: EnrollmentURI.Flavor) throws(CryptographyError) -> DeviceKey {
    flavor == .edupush && settings.prefersElliptic
      ? .p256(try P256PrivateKey()) : .rsa(try makeRSAKey(settings.keyBits))
  }

  /// Sends the enrollment request, which succeeds only once. If its response is lost, a repeat shows whether it
  /// arrived; in that case the server's key is lost permanently.
  private func exchangeKeys(
    _ uri: EnrollmentURI, _ key: DeviceKey, _ client: PushClient, _ account: AccountRecord,
    _ credentials: PushCredentials
  ) async throws -> RSAPublicKey {
    func send() async throws(TokenServerError) -> RSAPublicKey {
      try await client.enroll(
        serial: uri.serial, credential: uri.credential, publicKey: key.publicKeyOnTheWire,
        gatewayAddress: settings.hasGatewayAddress ? environment.makeUUID() : nil)
    }
    do {
      do { return try await send() } catch {
        guard error.isRetryable else { throw error }
        progress("\(error.explanation); retrying once")
        return try await send()
      }
    } catch let fault as TokenServerError {
      if !fault.isRetryable { try abandon(account, credentials, "\(fault)") }
      throw fault
    }
  }

  /// Deletes the new keys: the URL cannot enroll them any more. An account that was enrolled before is kept.
  private func abandon(_ account: AccountRecord, _ credentials: PushCredentials, _ why: String) throws {
    guard credentials.active != nil || account.stage == .mustEnrollAgain else {
      return try registry.wipe(
        account: account.id, if: account.enrollment,
        environment.auditEntry(.removed, account: account.id, detail: "not enrolled: \(why)"))
    }
    var (account, credentials) = (account, credentials)
    try change(&account, &credentials) { $1.next = nil }
  }

  /// Polls once. The server accepts any text as a public key and fails later; a poll verifies key, signature, clock and
  /// policy. A fault is reported, and ends no enrollment: a refusal can be temporary, and the running client finds out.
  private func probe(_ key: DeviceKey, of serial: String, _ client: PushClient) async {
    do { _ = try await client.poll(serial: serial, key: key) } catch {
      progress("enrolled, but the first poll failed: \(error.explanation)")
    }
  }
}
