public import Courier
import Cryptography
import JSONValues
public import MobileAuth
import Secrets

/// Registers one push mechanism with AM. It is on the card before AM hears of it; the same URI again goes on where a cut
/// happened. Where nobody can tell whether AM has taken it, the account stays, and the first message signed with its
/// secret makes it active.
public struct PingAMEnrolment: Sendable {
  /// What the administrator of this token has decided.
  public struct Settings: Sendable, Equatable {
    /// A PIN is chosen at enrolment, also where no policy of AM wants one.
    public var asksForPIN = false
    /// The PIN will do where AM wants a fingerprint.
    public var takesPINForBiometric = true
    /// The account's PIN has the secret of the one-time passwords of `mfauth`.
    public var codesWantPIN = false
    /// What AM is to call this device.
    public var deviceName = "approval-token"
    /// Where this device's messages are to be brought; nil makes a mailbox for each account.
    public var deviceToken: String?

    public init() {}
  }

  /// Four tries in some twelve seconds, for somebody waits. Then it is for the person to give the same code again while
  /// it lives, a minute or two.
  private static let pauses: [Duration] = [.seconds(1), .seconds(3), .seconds(8)]

  let registry: any SharedEnrolmentRegistry & AuditRecorder
  private let timekeeper: any Timekeeper
  let settings: Settings
  let pinDesk: PINDesk?
  private let isTamperedWith: @Sendable () -> Bool
  let oathDesk: OATHDesk
  let progress: @Sendable (String) -> Void
  private let makeCourier: @Sendable (ServerTrust) -> any Courier

  /// - Parameters:
  ///   - pinDesk: nil where nobody can type a PIN: accounts whose policies want one are refused then.
  ///   - isTamperedWith: what the token's own checks say.
  ///   - progress: told what is being done, for the person who waits.
  public init(
    registry: any SharedEnrolmentRegistry & AuditRecorder, timekeeper: any Timekeeper, settings: Settings = Settings(),
    pinDesk: PINDesk?, isTamperedWith: @escaping @Sendable () -> Bool,
    oathDesk: OATHDesk,
    progress: @escaping @Sendable (String) -> Void, makeCourier: @escaping @Sendable (ServerTrust) -> any Courier
  ) {
    self.registry = registry
    self.timekeeper = timekeeper
    self.settings = settings
    self.pinDesk = pinDesk
    self.isTamperedWith = isTamperedWith
    self.oathDesk = oathDesk
    self.progress = progress
    self.makeCourier = makeCourier
  }

  /// - Parameters:
  ///   - text: the URI, as it came.
  ///   - name: what the person calls the account; AM's account name if nil.
  ///   - trust: how AM is recognised.
  /// - Throws: `RegistrationURI.Flaw`, `TokenServerFault`, `CustodyFault`, `PanelDialogue.Ending`. `.outcomeUnknown`
  ///   leaves the account there, waiting for its first message. `MailboxRefusal`.
  public func enrol(_ text: String, name: String?, trust: ServerTrust) async throws -> AccountRecord {
    let uri = try RegistrationURI(text)
    let ticket = try Self.ticket(of: uri)
    let policies = try self.policies(of: uri)
    if uri.oath != nil, settings.codesWantPIN, pinDesk == nil { throw Self.nobodyTypes }
    var draft = try self.draft(uri, ticket, name: name, trust: trust)
    // A PIN that an earlier code was to have is wanted, too; without it what that code gave stays.
    let facts = draft.mechanism.facts
    if facts.codesWantPIN == true, facts.pinLength == nil, pinDesk == nil { throw Self.nobodyTypes }
    // What was found here may have been confirmed by a message since, or removed by somebody.
    guard try isKept(draft) else { return try await enrol(text, name: name, trust: trust) }
    try await keepOtherHalf(uri.oath, of: &draft, policies)
    let client = PingAMClient(courier: makeCourier(try keepingPins(trust, ticket)))
    progress("registering \(uri.accountName.forPeople) at \(draft.account.server)")
    let fault = try await fault(registering: draft, ticket, client)
    // A message may confirm it at any moment: AM knows it then, whatever it said.
    if let fault {
      guard try !isGivenUp(draft, fault), let confirmed = try confirmed(draft) else { throw fault }
      try keepTrust(of: draft)
      return confirmed
    }
    try keepTrust(of: draft)
    return try activated(draft)
  }

  // MARK: Before AM hears of it

  private static func ticket(of uri: RegistrationURI) throws(TokenServerFault) -> PushRegistrationTicket {
    guard let ticket = uri.push else {
      throw .configurationInvalid("this URI is for one-time passwords alone; there is nothing to register")
    }
    guard isPlainHTTPS(ticket.registrationURL), isPlainHTTPS(ticket.authenticationURL) else {
      throw .configurationInvalid("AM's addresses in the URI are not https; its base URL is set up so")
    }
    return ticket
  }

  private func policies(of uri: RegistrationURI) throws(TokenServerFault) -> AccountPolicies {
    let policies: AccountPolicies
    do { policies = try AccountPolicies(uri.policies) } catch {
      throw .configurationInvalid("the account's policies are not JSON as AM writes it")
    }
    for name in policies.unknownNames {
      progress(AccountPolicies.note(onUnknown: name))
    }
    // A PIN that can still be chosen is as good as one.
    guard
      let violation = policies.violation(
        hasPIN: { pinDesk != nil && settings.takesPINForBiometric }, isTamperedWith: isTamperedWith)
    else { return policies }
    throw .enrolmentDisabled(
      violation == AccountPolicies.biometricAvailable && !settings.takesPINForBiometric
        ? "AM wants a device that knows its person (\(violation)), and `pin_for_biometric = false` under [push] allows no "
          + "PIN for that (\(AccountPolicies.violationNumber))"
        : violation == AccountPolicies.biometricAvailable
          ? "AM wants a device that knows its person (\(violation)): enrol while `approval-token serve` runs on a board "
            + "with a keypad (\(AccountPolicies.violationNumber))"
          : "AM's policy \(violation) does not hold on this device (\(AccountPolicies.violationNumber))")
  }

  private func isKept(_ draft: Draft) throws -> Bool {
    if let known = draft.known { return try registry.change(known, .put(draft.account, nil)) }
    try registry.put(draft.account, nil)
    return true
  }

  // MARK: What AM says

  private func fault(
    registering draft: Draft, _ ticket: PushRegistrationTicket, _ client: PingAMClient
  ) async throws -> TokenServerFault? {
    do {
      try await register(draft, ticket, client)
      return nil
    } catch let fault as TokenServerFault { return fault }
  }

  /// A registration works once. When the answer to one that worked is lost, the repeat is refused just as a spent or
  /// forged one would be, and what is in the way may be another thing than before.
  private func register(_ draft: Draft, _ ticket: PushRegistrationTicket, _ client: PingAMClient) async throws {
    let body = draft.mechanism.registration(ticket, deviceName: settings.deviceName)
    var pauses = Self.pauses[...]
    var mayHaveArrived = draft.isResumed
    while true {
      do {
        switch try await client.post(body, to: ticket.registrationURL, cookie: ticket.cookie) {
        case .stored: return
        case .refused:
          throw TokenServerFault.refused(
            "AM did not take the registration: the QR code is spent, too old or damaged, or AM's push provider refused "
              + "this device (400)")
        }
      } catch let fault as TokenServerFault {
        guard fault.isWorthRepeating else { throw mayHaveArrived ? Self.unconfirmed(fault) : fault }
        mayHaveArrived = true
        guard let pause = pauses.popFirst() else {
          progress("what was begun is kept: give the same code again while it lives, a minute or two")
          throw fault
        }
        progress("\(fault); trying again")
        try await timekeeper.sleep(until: timekeeper.now + pause)
      }
    }
  }

  private static func unconfirmed(_ fault: TokenServerFault) -> TokenServerFault {
    .outcomeUnknown(
      "AM's answer was lost, and AM does not tell whether it has taken the registration: if it has, the first login makes "
        + "the account active; if not, ask for a new QR code (\(fault))")
  }

  private func activated(_ draft: Draft) throws -> AccountRecord {
    var (account, mechanism) = (draft.account, draft.mechanism)
    mechanism.facts.registration = nil
    account.stage = .active
    account.secrets = mechanism.encoded
    let entry = entry(.enrolled, account, "at \(account.server)")
    if try registry.change(draft.account, .put(account, entry)) { return account }
    guard let confirmed = try confirmed(draft) else { throw Self.isGone(account.id) }
    return confirmed
  }

  static func isGone(_ account: AccountID) -> CustodyFault { .unknown("account \(account)") }

  /// The account, if a message that came meanwhile has made it active.
  private func confirmed(_ draft: Draft) throws -> AccountRecord? {
    try registry.accounts().first { record in
      try record.id == draft.account.id && record.stage == .active
        && Mechanism(record)?.facts.uid == draft.mechanism.facts.uid
    }
  }

  /// The URI will never be good for this mechanism, unless nobody can tell. What was enrolled before keeps its name.
  /// - Returns: false also if a message has just confirmed it.
  private func isGivenUp(_ draft: Draft, _ fault: TokenServerFault) throws -> Bool {
    if fault.isWorthRepeating { return false }
    if case .outcomeUnknown = fault { return false }
    return try registry.change(
      draft.account,
      draft.isReplacement
        ? .dropKeys(entry(.disenrolled, draft.account, "not enrolled again: \(fault)"))
        : .wipe(entry(.removed, draft.account, "not enrolled: \(fault)")))
  }

  func recordPinsDropped(of server: TokenServerID, _ pins: [String]) throws(CustodyFault) {
    try registry.record(
      AuditEntry(
        .pinsDropped, detail: "\(server): \(pins.joined(separator: ", "))",
        wallClockMilliseconds: timekeeper.wallClockMilliseconds))
  }

  private func entry(_ kind: AuditEntry.Kind, _ account: AccountRecord, _ detail: String) -> AuditEntry {
    AuditEntry(kind, account: account.id, detail: detail, wallClockMilliseconds: timekeeper.wallClockMilliseconds)
  }
}

private func isPlainHTTPS(_ url: String) -> Bool { url.lowercased().hasPrefix("https://") && isPlainURL(url) }
