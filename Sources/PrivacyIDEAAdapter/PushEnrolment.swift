public import Courier
import Cryptography
public import MobileAuth
import Secrets

/// Enrols one push token. Key and URL are on the card before the server hears of them, and the same URL again goes on
/// where a cut happened; a URL for a known serial replaces its keys once the server has taken the new ones.
public struct PushEnrolment: Sendable {
  /// What the administrator of this token has decided.
  public struct Settings: Sendable, Equatable {
    /// Of the token's own key: 2048 to 4096.
    public var keyBits = 3072
    /// P-256 instead of RSA, where the server is eduMFA's and takes it.
    public var prefersElliptic = false
    /// The PIN will do where the server's administrator wants a fingerprint.
    public var takesPINForBiometric = false
    /// A gateway may post to this token, and has to call it something.
    public var hasMailbox = false
    /// The person wants a PIN before each accept, whatever the server's administrator wants.
    public var asksForPIN = false

    public init() {}
  }

  private let registry: any EnrolmentRegistry & Custody
  private let timekeeper: any Timekeeper
  private let settings: Settings
  private let pinDesk: PINDesk?
  private let progress: @Sendable (String) -> Void
  private let makeCourier: @Sendable (ServerTrust) -> any Courier

  /// - Parameters:
  ///   - pinDesk: nil where nobody can type a PIN: tokens that want one are refused then.
  ///   - progress: told what is being done, for the person who waits.
  public init(
    registry: any EnrolmentRegistry & Custody, timekeeper: any Timekeeper, settings: Settings = Settings(),
    pinDesk: PINDesk?, progress: @escaping @Sendable (String) -> Void,
    makeCourier: @escaping @Sendable (ServerTrust) -> any Courier
  ) {
    self.registry = registry
    self.timekeeper = timekeeper
    self.settings = settings
    self.pinDesk = pinDesk
    self.progress = progress
    self.makeCourier = makeCourier
  }

  /// - Parameters:
  ///   - text: the URL, as it came.
  ///   - name: what the person calls the account; the serial if nil. One that is enrolled again keeps its name.
  ///   - trust: how the server is recognised.
  /// - Throws: `EnrolmentURI.Flaw`, `TokenServerFault`, `CustodyFault`.
  public func enrol(_ text: String, name: String?, trust: ServerTrust) async throws -> AccountRecord {
    let uri = try EnrolmentURI(text)
    let former = try registry.servers().first { $0.url == uri.endpoint }.map { try EndpointCredentials($0).pins }
    let trust = trust.keeping(pins: former ?? [])
    try check(uri, trust)
    let server = try self.server(for: uri, trust)
    var (account, credentials) = try self.account(for: uri, at: server, name: name)
    let open = try await prepare(&account, &credentials, uri, text)
    let client = PushClient(endpoint: uri.endpoint, courier: makeCourier(trust), clock: ServerClock(timekeeper))

    progress("enrolling \(uri.serial) at \(server.id)")
    let serverKey = try await exchangeKeys(uri, open.key, client, account, credentials)
    // A PIN that was chosen once, perhaps meanwhile, goes on being wanted: new keys are no way around it.
    credentials.pinLength = try kept(account)?.pinLength ?? credentials.pinLength
    let keys = TokenKeys(device: open.key, server: serverKey, wantsPIN: credentials.pinLength != nil)
    credentials.active = keys
    credentials.next = nil
    account.stage = .active
    account.secrets = try credentials.encoded()
    try keepTrust(of: server, trust.pins)
    try registry.put(account, entry(.enrolled, account, "at \(server.id), serial \(account.profile)"))
    try await tryOut(keys, of: &account, client)
    return account
  }

  private func check(_ uri: EnrolmentURI, _ trust: ServerTrust) throws(TokenServerFault) {
    guard uri.verifiesServer || !trust.pins.isEmpty || trust.authorityFile != nil else {
      throw .configurationInvalid(
        "it asks for its certificate not to be looked at (sslverify=0): name its authority's file or its key's pin")
    }
    guard uri.unlock != .biometric || settings.takesPINForBiometric else {
      throw .configurationInvalid(
        "it wants a fingerprint before each accept (app_force_unlock=biometric), which this token has not; "
          + "`pin_for_biometric = true` under [push] in its configuration lets the PIN stand for it")
    }
    guard pinDesk != nil || !isPINWanted(by: uri) else {
      throw .configurationInvalid(
        "a PIN is wanted before each accept: enrol while `approval-token serve` runs on a board with a keypad")
    }
  }

  private func isPINWanted(by uri: EnrolmentURI) -> Bool { uri.unlock != nil || settings.asksForPIN }

  private func server(for uri: EnrolmentURI, _ trust: ServerTrust) throws -> TokenServerRecord {
    let credentials = EndpointCredentials(pins: trust.pins)
    if let known = try registry.servers().first(where: { $0.url == uri.endpoint }) {
      // Others there rely on their pins until the server was reached with these.
      let isReliedOn = try registry.accounts().contains {
        $0.server == known.id && ($0.stage == .active || $0.profile != uri.serial)
      }
      if !isReliedOn { try keepTrust(of: known, trust.pins) }
      return known
    }
    let record = TokenServerRecord(
      id: TokenServerID(String(uri.endpoint.dropFirst("https://".count))), kind: PrivacyIDEA.kind, url: uri.endpoint,
      secrets: credentials.encoded)
    try registry.put(record)
    return record
  }

  /// Whoever brings the URL vouches for its pins.
  private func keepTrust(of server: TokenServerRecord, _ pins: [String]) throws {
    guard var known = try registry.servers().first(where: { $0.id == server.id }),
      try EndpointCredentials(known).pins != pins
    else { return }
    let former = try EndpointCredentials(known).pins
    known.secrets = EndpointCredentials(pins: pins).encoded
    try registry.put(known)
    guard pins.isEmpty else { return }
    try registry.record(
      AuditEntry(
        .pinsDropped, detail: "\(server.id): \(former.joined(separator: ", "))",
        wallClockMilliseconds: timekeeper.wallClockMilliseconds))
  }

  private func account(
    for uri: EnrolmentURI, at server: TokenServerRecord, name: String?
  ) throws -> (AccountRecord, PushCredentials) {
    let known = try registry.accounts()
    if let record = known.first(where: { $0.server == server.id && $0.profile == uri.serial }) {
      return (record, try PushCredentials(record))
    }
    let id = AccountID(name ?? uri.serial)
    guard !known.contains(where: { $0.id == id }) else {
      throw TokenServerFault.alreadyEnrolled("there is an account \"\(id)\" already; choose another name")
    }
    let record = AccountRecord(
      id: id, server: server.id, profile: uri.serial, stage: .enrolling, secrets: SecretBytes(copying: []))
    return (record, PushCredentials())
  }

  /// Everything that has to be on the card before the one request leaves.
  private func prepare(
    _ account: inout AccountRecord, _ credentials: inout PushCredentials, _ uri: EnrolmentURI, _ text: String
  ) async throws -> OpenEnrolment {
    let open = try begun(by: uri, account, credentials) ?? begin(uri, text, &account, &credentials)
    guard isPINWanted(by: uri), credentials.pinLength == nil, let pinDesk else { return open }
    progress("choose a PIN: type it on the keypad, Enter, and once more")
    let pin = try await pinDesk.choose()
    if let kept = try kept(account), kept.pinLength != nil {
      // Another was chosen meanwhile, and counts.
      progress("the account has a PIN by now, which is kept; this one is not used")
      credentials = kept
      return open
    }
    try pinDesk.keep(account.id, pin)
    credentials.pinLength = pin.count
    account.secrets = try credentials.encoded()
    try registry.put(account, nil)
    return open
  }

  /// What the account has now.
  private func kept(_ account: AccountRecord) throws -> PushCredentials? {
    try registry.accounts().first { $0.id == account.id }.map { record in try PushCredentials(record) }
  }

  /// What a cut or an outage has left of an enrolment with this URL.
  private func begun(
    by uri: EnrolmentURI, _ account: AccountRecord, _ credentials: PushCredentials
  ) throws -> OpenEnrolment? {
    guard let open = credentials.next, (try? EnrolmentURI(open.uri)) == uri else { return nil }
    guard open.giveUpAt.map({ timekeeper.wallClockMilliseconds < $0 }) ?? true else {
      try abandon(account, credentials, "its time is over")
      throw TokenServerFault.refused("the enrolment URL's time is over; ask for a new one")
    }
    return open
  }

  private func begin(
    _ uri: EnrolmentURI, _ text: String, _ account: inout AccountRecord, _ credentials: inout PushCredentials
  ) throws -> OpenEnrolment {
    progress("making a key")
    let now = timekeeper.wallClockMilliseconds
    let open = OpenEnrolment(
      key: try makeKey(for: uri.flavour), uri: text,
      giveUpAt: ServerClock.isPlausible(now) ? now + uri.timeToLive.milliseconds : nil)
    credentials.next = open
    account.secrets = try credentials.encoded()
    try registry.put(account, nil)
    return open
  }

  private func makeKey(for flavour: EnrolmentURI.Flavour) throws(CryptographyError) -> DeviceKey {
    flavour == .edupush && settings.prefersElliptic
      ? .p256(try P256PrivateKey()) : .rsa(try RSAPrivateKey(bits: settings.keyBits))
  }

  /// The request works once. If its answer is lost, a repeat tells whether it had arrived; then the server's key is lost
  /// too, for good.
  private func exchangeKeys(
    _ uri: EnrolmentURI, _ key: DeviceKey, _ client: PushClient, _ account: AccountRecord,
    _ credentials: PushCredentials
  ) async throws -> RSAPublicKey {
    func send() async throws(TokenServerFault) -> RSAPublicKey {
      try await client.enrol(
        serial: uri.serial, credential: uri.credential, publicKey: key.publicKeyOnTheWire,
        mailbox: settings.hasMailbox ? Random.uuid() : nil)
    }
    do {
      do { return try await send() } catch {
        guard error.isWorthRepeating else { throw error }
        progress("\(error); trying once more")
        return try await send()
      }
    } catch let fault as TokenServerFault {
      if !fault.isWorthRepeating { try abandon(account, credentials, "\(fault)") }
      throw fault
    }
  }

  /// The URL will never be good for these keys. What was enrolled before stays, if only its name.
  private func abandon(_ account: AccountRecord, _ credentials: PushCredentials, _ why: String) throws {
    guard credentials.active != nil || account.stage == .mustEnrolAgain else {
      return try registry.wipe(account: account.id, entry(.removed, account, "not enrolled: \(why)"))
    }
    var (account, credentials) = (account, credentials)
    credentials.next = nil
    account.secrets = try credentials.encoded()
    try registry.put(account, nil)
  }

  /// The server takes any text for a public key and fails later: a poll proves key, signature, clock and policy.
  private func tryOut(_ keys: TokenKeys, of account: inout AccountRecord, _ client: PushClient) async throws {
    guard let fault = await pollFault(keys, account, client) else { return }
    guard fault == .notKnown else { return progress("enrolled, but the first poll failed: \(fault)") }
    account.stage = .mustEnrolAgain
    try registry.put(account, entry(.disenrolled, account, "\(fault)"))
    throw TokenServerFault.disenrolled
  }

  private func pollFault(_ keys: TokenKeys, _ account: AccountRecord, _ client: PushClient) async -> PollFault? {
    do {
      _ = try await client.poll(serial: account.profile, key: keys.device)
      return nil
    } catch { return error }
  }

  private func entry(_ kind: AuditEntry.Kind, _ account: AccountRecord, _ detail: String) -> AuditEntry {
    AuditEntry(kind, account: account.id, detail: detail, wallClockMilliseconds: timekeeper.wallClockMilliseconds)
  }
}
