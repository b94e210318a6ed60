// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import HTTP
import MobileAuth
import RegistrationURIs
import Secrets
import ServerBackends

/// Preparation of an account before it is registered at AM.
extension PingAMEnrollment {
  struct Draft {
    /// The server record with the trust settings to store after AM was reached with them.
    let server: TokenServerRecord
    var account: AccountRecord
    var mechanism: Mechanism
    /// The account as stored before this enrollment; nil for a new account.
    let known: AccountRecord?
    /// Whether an earlier run may have registered this account at AM.
    let isResumed: Bool

    /// Whether the account was enrolled before. A failed enrollment then keeps its name.
    var isReplacement: Bool { known?.stage == .mustEnrollAgain }
  }

  func draft(
    _ uri: RegistrationURI, _ ticket: PushRegistrationTicket, name: String?, trust: ServerTrust
  ) throws -> Draft {
    try refuseNamesake(of: uri, ticket)
    let server = try self.server(for: ticket, uri.pushProfile, trust)
    let known = try registry.accounts()
    for record in known where record.server == server.id {
      let mechanism = try Mechanism(record)
      guard record.profile == uri.pushProfile else { continue }
      if record.stage == .active { throw Self.isHere(record.id) }
      try checkMailbox(of: record.id)
      if let mechanism, mechanism.metadata.registration?.messageID == ticket.messageID {
        let registered = mechanism.metadata.wantedDeviceToken ?? mechanism.metadata.deviceToken
        guard [nil, registered].contains(settings.deviceToken) else { throw MailboxError.registeredWith(registered) }
        return Draft(
          server: server, account: record, mechanism: resumed(mechanism, uri), known: record, isResumed: true)
      }
      var account = record
      let fresh = self.mechanism(uri, ticket, after: mechanism?.metadata)
      account.stage = .enrolling
      account.enrollment = environment.makeEnrollmentID()
      account.lock = nil
      account = fresh.stored(in: account)
      return Draft(
        server: server, account: account, mechanism: fresh, known: record, isResumed: false)
    }
    let id = AccountID(name ?? Self.name(for: uri))
    guard !known.contains(where: { $0.id == id }) else {
      throw TokenServerError.alreadyEnrolled("there is an account \"\(id)\" already; choose another name")
    }
    try checkMailbox(of: id)
    let mechanism = self.mechanism(uri, ticket, after: nil)
    let account = mechanism.stored(
      in: AccountRecord(
        id: id, server: server.id, profile: uri.pushProfile, stage: .enrolling,
        enrollment: environment.makeEnrollmentID(), secrets: SecretBytes(copying: [])))
    return Draft(
      server: server, account: account, mechanism: mechanism, known: nil, isResumed: false)
  }

  /// Rejects an account that exists under another server: a second copy of an HOTP account would start with a separate
  /// counter.
  private func refuseNamesake(of uri: RegistrationURI, _ ticket: PushRegistrationTicket) throws {
    guard uri.oath != nil else { return }
    let server = Self.serverID(at: Self.url(of: ticket))
    if let other = try uri.namesakes(in: registry).first(where: { $0.server != server }) {
      throw Self.isHere(other.id)
    }
  }

  private static func isHere(_ account: AccountID) -> TokenServerError {
    .alreadyEnrolled("it is the account \"\(account)\"")
  }

  private func checkMailbox(of account: AccountID) throws {
    guard let mailbox = settings.deviceToken else { return }
    try PingAM.check(mailbox: mailbox, for: account, in: registry)
  }

  /// Applies a new request for PIN-protected one-time passwords. The stored account changes only when the PIN is
  /// chosen.
  private func resumed(_ mechanism: Mechanism, _ uri: RegistrationURI) -> Mechanism {
    guard uri.oath != nil, settings.codesWantPIN, mechanism.metadata.codesWantPIN != true else { return mechanism }
    var mechanism = mechanism
    mechanism.metadata.codesWantPIN = true
    mechanism.metadata.pinLength = nil
    return mechanism
  }

  /// Creates the mechanism to register.
  /// - Parameter former: the metadata of an earlier registration that failed. Its PIN is kept, unless that PIN protects
  ///   the one-time passwords or is to protect the new ones: then the user chooses a new PIN.
  private func mechanism(
    _ uri: RegistrationURI, _ ticket: PushRegistrationTicket, after former: Mechanism.Metadata?
  ) -> Mechanism {
    let codesWantedPIN = former?.codesWantPIN == true
    let codesWantPIN = uri.oath != nil && (settings.codesWantPIN || codesWantedPIN)
    let pinLength = codesWantPIN || codesWantedPIN ? nil : former?.pinLength
    return Mechanism(
      metadata: Mechanism.Metadata(
        uid: environment.makeUUID(), issuer: uri.issuer, accountName: uri.accountName,
        registrationURL: ticket.registrationURL,
        authenticationURL: ticket.authenticationURL, cookie: ticket.cookie, userID: ticket.userID,
        resourceID: ticket.resourceID, policies: uri.policies,
        deviceToken: settings.deviceToken ?? PingAM.makeMailbox(), pinLength: pinLength,
        codesWantPIN: codesWantPIN ? true : nil,
        registration: Mechanism.Registration(messageID: ticket.messageID, challenge: ticket.challenge)),
      secret: SharedSecret(bytes: ticket.secret))
  }

  /// The URL that identifies one realm of one AM.
  private static func url(of ticket: PushRegistrationTicket) -> String {
    let address = ticket.authenticationURL.prefix { $0 != "?" }
    return String(address.hasSuffix("/push/sns/message") ? address.dropLast("/push/sns/message".count) : address)
  }

  private static func serverID(at url: String) -> TokenServerID {
    TokenServerID(String(url.dropFirst("https://".count)))
  }

  /// Returns the server record of the realm. All accounts in the realm share it.
  private func server(
    for ticket: PushRegistrationTicket, _ profile: String, _ trust: ServerTrust
  ) throws -> TokenServerRecord {
    let url = Self.url(of: ticket)
    let id = Self.serverID(at: url)
    let trust = try keepingPins(trust, ticket)
    let known = try registry.servers().first { $0.id == id && $0.kind == PingAM.kind }
    let record = TokenServerRecord(
      id: id, kind: PingAM.kind, url: url, registration: known?.registration ?? .unregistered,
      secrets: CertificatePins(trust.pins).encoded)
    try registry.requireNoOtherKind(of: id, than: PingAM.kind)
    // The URI is trusted to set pins, but other accounts depend on the stored pins until AM was reached with the new
    // ones.
    let isReliedOn = try registry.accounts().contains {
      $0.server == id && ($0.stage == .active || $0.profile != profile)
    }
    if !isReliedOn { try keepTrust(record) }
    return record
  }

  /// Returns the trust settings of this enrollment; without pins of its own, those stored for the server.
  func keepingPins(_ trust: ServerTrust, _ ticket: PushRegistrationTicket) throws -> ServerTrust {
    let id = Self.serverID(at: Self.url(of: ticket))
    let known = try registry.servers().first { $0.id == id && $0.kind == PingAM.kind }
    return trust.keeping(pins: try known.map { try CertificatePins($0).pins } ?? [])
  }

  func keepTrust(of draft: Draft) throws { try keepTrust(draft.server) }

  private func keepTrust(_ record: TokenServerRecord) throws {
    let known = try registry.servers().first { $0.id == record.id && $0.kind == PingAM.kind }
    let former = try known.map { try CertificatePins($0).pins }
    let pins = try CertificatePins(record).pins
    guard former != pins else { return }
    try registry.put(record)
    guard let former, pins.isEmpty else { return }
    try recordPinsDropped(of: record.id, former)
  }

  /// Returns an account name of at most 64 bytes without white space.
  private static func name(for uri: RegistrationURI) -> String {
    var name = uri.accountName.sanitizedName.split(whereSeparator: \.isWhitespace).joined(separator: "-")
    while name.utf8.count > 64 { name.removeLast() }
    return name.isEmpty ? "Untitled" : name
  }
}
