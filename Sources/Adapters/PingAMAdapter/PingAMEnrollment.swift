// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
package import HTTP
import JSONValues
package import MobileAuth
import RegistrationURIs
import Secrets
import ServerBackends

/// Registers one push mechanism with AM. The account is stored before the request is sent, so the same URI resumes an
/// enrollment that a crash or power loss interrupted. If it is unknown whether AM has accepted the registration, the
/// account is kept, and the first message signed with its secret makes it active.
package struct PingAMEnrollment: Sendable {
  /// Settings that the operator of this token chooses.
  package struct Settings: Sendable, Equatable {
    /// Whether a PIN is chosen at enrollment even if no policy of AM requires one.
    package var asksForPIN = false
    /// Whether the PIN replaces the biometric check that AM requests.
    package var takesPINForBiometric = true
    /// Whether programs are shown the numbers from which the user chooses the one on the login page.
    package var showsNumbers = false
    /// Whether the one-time password secret of an `mfauth` URI is encrypted with a key derived from the account's PIN.
    package var codesWantPIN = false
    /// The device name that AM shows.
    package var deviceName = "approval-token"
    /// The mailbox of this account; nil creates a random one for each account.
    package var deviceToken: String?

    package init() {}
  }

  /// Pauses between the four attempts, 12 s in total because a user waits. After that the user can repeat the
  /// enrollment with the same QR code until it expires, after a minute or two.
  private static let pauses: [Duration] = [.seconds(1), .seconds(3), .seconds(8)]

  let registry: any SharedEnrollmentRegistry & AuditRecorder
  let environment: TokenEnvironment
  let settings: Settings
  let pinPrompter: PINPrompter?
  private let isTamperedWith: @Sendable () -> Bool
  let otpSecretStore: OTPSecretStore
  let progress: @Sendable (String) -> Void
  private let makeHTTPTransport: @Sendable (ServerTrust) -> any HTTPTransport

  /// - Parameters:
  ///   - pinPrompter: lets the user choose a PIN; nil without a keypad. Accounts whose policies require a PIN are then
  ///     refused.
  ///   - isTamperedWith: the result of the token's own tamper checks.
  ///   - progress: called with a progress message for the waiting user.
  package init(
    registry: any SharedEnrollmentRegistry & AuditRecorder, in environment: TokenEnvironment, settings: Settings,
    pinPrompter: PINPrompter?, isTamperedWith: @escaping @Sendable () -> Bool,
    otpSecretStore: OTPSecretStore,
    progress: @escaping @Sendable (String) -> Void,
    makeHTTPTransport: @escaping @Sendable (ServerTrust) -> any HTTPTransport
  ) {
    self.registry = registry
    self.environment = environment
    self.settings = settings
    self.pinPrompter = pinPrompter
    self.isTamperedWith = isTamperedWith
    self.otpSecretStore = otpSecretStore
    self.progress = progress
    self.makeHTTPTransport = makeHTTPTransport
  }

  /// Enrolls the account of a registration URI, or resumes its enrollment.
  /// - Parameters:
  ///   - text: the URI as read from the QR code.
  ///   - name: the user's name for the account; nil uses AM's account name.
  ///   - trust: how AM's certificate is verified.
  /// - Throws: `RegistrationURI.ParseError`, `MailboxError`, `StateStoreError`, `PanelDialog.EntryError`,
  ///   `TokenServerError`. After `.outcomeUnknown` the account is kept and waits for its first message.
  package func enroll(_ text: String, name: String?, trust: ServerTrust) async throws -> AccountRecord {
    let uri = try RegistrationURI(text)
    let ticket = try Self.ticket(of: uri)
    let policies = try self.policies(of: uri)
    if uri.oath != nil, settings.codesWantPIN, pinPrompter == nil { throw Self.noKeypad }
    var draft = try self.draft(uri, ticket, name: name, trust: trust)
    // An earlier QR code may have requested PIN protection, which still applies. Without a keypad, keep the credential
    // of that code.
    let metadata = draft.mechanism.metadata
    if metadata.codesWantPIN == true, metadata.pinLength == nil, pinPrompter == nil { throw Self.noKeypad }
    // A message may have activated the stored account, or a command may have removed it, since `draft` read it.
    guard try isKept(draft) else { return try await enroll(text, name: name, trust: trust) }
    try await keepOtherHalf(uri.oath, of: &draft, policies)
    let addresses = [ticket.registrationURL, ticket.authenticationURL]
    let client = PingAMHTTPClient(http: makeHTTPTransport(try keepingPins(trust, ticket).limited(to: addresses)))
    progress("registering \(uri.accountName.sanitized) at \(draft.account.server)")
    let fault = try await fault(registering: draft, ticket, client)
    // If a message has activated the account, AM knows it, even if AM's response was an error.
    if let fault {
      guard try !isGivenUp(draft, fault), let confirmed = try confirmed(draft) else { throw fault }
      try keepTrust(of: draft)
      return confirmed
    }
    try keepTrust(of: draft)
    return try activated(draft)
  }

  // MARK: Before registration at AM

  private static func ticket(of uri: RegistrationURI) throws -> PushRegistrationTicket {
    guard let ticket = uri.push else {
      throw TokenServerError.configurationInvalid("this URI is for one-time passwords only and registers nothing at AM")
    }
    guard [ticket.registrationURL, ticket.authenticationURL].allSatisfy({ $0.hasPrefix("https://") }) else {
      throw RegistrationURI.ParseError.notHTTPS
    }
    return ticket
  }

  private func policies(of uri: RegistrationURI) throws(TokenServerError) -> AccountPolicies {
    let policies: AccountPolicies
    do { policies = try AccountPolicies(uri.policies) } catch {
      throw .configurationInvalid("the account's policies are not the JSON that AM writes")
    }
    for name in policies.unknownNames {
      progress(AccountPolicies.note(onUnknown: name))
    }
    // A PIN that can still be chosen satisfies the policy.
    guard
      let violation = policies.violation(
        hasPIN: { pinPrompter != nil && settings.takesPINForBiometric }, isTamperedWith: isTamperedWith)
    else { return policies }
    throw .enrollmentDisabled(
      violation == AccountPolicies.biometricAvailable && !settings.takesPINForBiometric
        ? "AM requires user verification (\(violation)), and `pin_for_biometric = false` in [push] allows no "
          + "PIN for that (\(AccountPolicies.violationNumber))"
        : violation == AccountPolicies.biometricAvailable
          ? "AM requires user verification (\(violation)): enroll while `approval-token serve` runs on a board "
            + "with a keypad (\(AccountPolicies.violationNumber))"
          : "AM's policy \(violation) does not hold on this device (\(AccountPolicies.violationNumber))")
  }

  private func isKept(_ draft: Draft) throws -> Bool {
    if let known = draft.known { return try registry.change(known, .put(draft.account, nil)) }
    try registry.put(draft.account, nil)
    return true
  }

  // MARK: AM's responses

  private func fault(
    registering draft: Draft, _ ticket: PushRegistrationTicket, _ client: PingAMHTTPClient
  ) async throws -> TokenServerError? {
    do {
      try await register(draft, ticket, client)
      return nil
    } catch let fault as TokenServerError { return fault }
  }

  /// Sends the registration with retries. AM accepts a registration once. If the response to the accepted request is
  /// lost, AM refuses the repeat as it refuses an expired or forged one; the later attempt can also fail for another
  /// reason.
  private func register(_ draft: Draft, _ ticket: PushRegistrationTicket, _ client: PingAMHTTPClient) async throws {
    let body = draft.mechanism.registration(ticket, deviceName: settings.deviceName)
    var pauses = Self.pauses[...]
    var mayHaveArrived = draft.isResumed
    while true {
      do {
        switch try await client.post(body, to: ticket.registrationURL, cookie: ticket.cookie) {
        case .stored: return
        case .refused:
          throw TokenServerError.refused(
            "AM refused the registration: the QR code is used, expired or damaged, or AM's push provider refused "
              + "this device (400)")
        }
      } catch let fault as TokenServerError {
        guard fault.isRetryable else { throw mayHaveArrived ? Self.unconfirmed(fault) : fault }
        mayHaveArrived = true
        guard let pause = pauses.popFirst() else {
          progress("the enrollment is kept: repeat it with the same QR code before the code expires in a minute or two")
          throw fault
        }
        progress("\(fault.explanation); trying again")
        try await environment.sleep(for: pause)
      }
    }
  }

  private static func unconfirmed(_ fault: TokenServerError) -> TokenServerError {
    .outcomeUnknown(
      "AM's answer was lost, and AM cannot report whether it registered the account: if it did, the first login makes "
        + "the account active; if not, ask for a new QR code (\(fault.explanation))")
  }

  private func activated(_ draft: Draft) throws -> AccountRecord {
    var (account, mechanism) = (draft.account, draft.mechanism)
    mechanism.metadata.registration = nil
    account.stage = .active
    account = mechanism.stored(in: account)
    let entry = environment.auditEntry(.enrolled, account: account.id, detail: "at \(account.server)")
    if try registry.change(draft.account, .put(account, entry)) { return account }
    guard let confirmed = try confirmed(draft) else { throw Self.isGone(account.id) }
    return confirmed
  }

  static func isGone(_ account: AccountID) -> StateStoreError { .notFound(.account(account)) }

  /// The account, if a message has activated it since the draft was made.
  private func confirmed(_ draft: Draft) throws -> AccountRecord? {
    try registry.accounts().first { record in
      try record.id == draft.account.id && record.stage == .active
        && Mechanism(record)?.metadata.uid == draft.mechanism.metadata.uid
    }
  }

  /// Deletes the account after a permanent failure, because the URI can no longer register this mechanism. Keeps it if
  /// the outcome is unknown. An account that was enrolled before keeps its name and loses its keys.
  /// - Returns: whether it was deleted; false also if a message has just activated the account.
  private func isGivenUp(_ draft: Draft, _ fault: TokenServerError) throws -> Bool {
    if fault.isRetryable { return false }
    if case .outcomeUnknown = fault { return false }
    let account = draft.account.id
    return try registry.change(
      draft.account,
      draft.isReplacement
        ? .dropKeys(environment.auditEntry(.disenrolled, account: account, detail: "not enrolled again: \(fault)"))
        : .wipe(environment.auditEntry(.removed, account: account, detail: "not enrolled: \(fault)")))
  }

  func recordPinsDropped(of server: TokenServerID, _ pins: [String]) throws(StateStoreError) {
    try registry.record(
      environment.auditEntry(.pinsDropped, detail: "\(server): \(pins.joined(separator: ", "))"))
  }
}
