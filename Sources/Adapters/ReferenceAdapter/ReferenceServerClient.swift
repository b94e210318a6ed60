// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
package import HTTP
package import MobileAuth
import OpenPGP
package import ReferenceProtocol
package import Secrets
package import ServerBackends
import Synchronization

/// The client of a reference token server: implements `TokenServerClient` over the device API `/device/v1`.
package final class ReferenceServerClient: TokenServerClient {
  /// The `kind` of `TokenServerRecord` for reference servers.
  package static let kind = "reference"
  /// The product's name and version, shown to the server's administrator.
  package static let software = (id: "approval-token", version: "0.1.0")

  struct Account: Sendable {
    let id: AccountID
    let profile: String
    let key: OpenPGPKey
    let serverCertificate: OpenPGPCertificate
    var pin: AccountPIN?
    var authenticators: [StoredAuthenticator]
    /// The identifier of the preferred authenticator; nil for the PIN.
    var preferred: String?

    init(_ record: AccountRecord, _ credentials: AccountCredentials, _ serverCertificate: OpenPGPCertificate) {
      id = record.id
      profile = record.profile
      key = credentials.key
      self.serverCertificate = serverCertificate
      (pin, authenticators, preferred) = (credentials.pin, credentials.authenticators, credentials.preferred)
    }
  }

  package let id: TokenServerID
  package let enrollments: Enrollments
  let clientID: String
  let client: DeviceClient
  let revocations: Revocations
  let environment: TokenEnvironment
  let registry: any SharedEnrollmentRegistry
  /// The device-binding key: without it, a token encrypted with a PIN cannot be decrypted on another device.
  let pinBinding: SecretBytes
  let feed: EventFeed
  let brokerFeed: BrokerEventFeed?
  let drivers: AuthenticatorDrivers
  let unlocked: UnlockedTokens
  /// What the PIN of an answer decrypted that the server has not answered, by profile.
  let unconfirmed = Mutex<[String: UnconfirmedTokens]>([:])
  /// The capabilities that the server knows, of those that change.
  let announced = Mutex<ApprovalCapabilities?>(nil)
  private let board: ApprovalCapabilities?
  /// Whether the server reported a broker at the last validation.
  let hasBroker = Mutex(false)
  /// Whether the server reported at the last validation that accounts can have authenticators besides the PIN.
  let hasAuthenticators = Mutex<Bool?>(nil)
  /// Held while the credentials of an account are read, changed and stored.
  private let changing = Mutex(())
  /// Active accounts by profile.
  let accounts: Mutex<[String: Account]>
  /// Profiles whose server was seen to sign receipts, since this process started.
  let receiptSigners = Mutex<Set<String>>([])
  /// The profiles of which the server has proved, or this token has decided, that only their push enrollment is lost.
  let withoutPush = Mutex<Set<String>>([])
  /// The newest request's message from the last list.
  let listedMessage = ListedMessage()
  /// Accounts without keys by profile. Kept so that the user sees that they must be enrolled again.
  private let expired: [String: AccountID]
  /// Those of them of which nothing is left, not even a PIN: they can lose nothing by a false removal, and an account
  /// that replaces them need not wait.
  private let empty: Set<String>

  /// - Parameters:
  ///   - accounts: the accounts of this server. Accounts that are not active send no answers.
  ///   - registry: the store of the accounts.
  ///   - pinBinding: `Vault.pinBinding`.
  ///   - broker: delivers hints, if the server publishes them to a broker.
  ///   - capabilities: the board's capabilities, sent with each validation; nil if unknown. The authenticators in it
  ///     are replaced by those whose drivers are usable.
  ///   - drivers: the drivers of authenticators.
  ///   - unlocked: the tokens of fingerprints, kept when the client is replaced.
  package init(
    _ record: TokenServerRecord, accounts: [AccountRecord], registry: any SharedEnrollmentRegistry,
    pinBinding: SecretBytes, http: any HTTPTransport, in environment: TokenEnvironment,
    broker: (any HintBroker)? = nil,
    capabilities: ApprovalCapabilities? = nil, drivers: AuthenticatorDrivers = AuthenticatorDrivers(),
    unlocked: UnlockedTokens = UnlockedTokens()
  ) throws(StateStoreError) {
    let credentials = try DeviceCredentials(record)
    guard let clientID = credentials.clientID else { throw .notFound(.registration(at: record.id)) }
    id = record.id
    enrollments = Enrollments(record, accounts)
    self.clientID = clientID
    self.registry = registry
    self.pinBinding = pinBinding
    board = capabilities
    self.drivers = drivers
    self.unlocked = unlocked
    self.environment = environment
    let revocations = Revocations(in: environment)
    self.revocations = revocations
    client = DeviceClient(
      issuer: record.url, clientID: clientID, key: credentials.deviceKey, http: http, in: environment,
      revocations: revocations)
    feed = EventFeed(client: client, environment: environment, memory: EventFeed.Memory())
    brokerFeed = broker.map { [client] in BrokerEventFeed(client: client, broker: $0, environment: environment) }
    self.accounts = Mutex(try Self.active(accounts))
    let keyless = accounts.filter { $0.stage == .mustEnrollAgain }.map { ($0.profile, $0.id) }
    expired = Dictionary(keyless) { first, _ in first }
    empty = Set(accounts.filter { $0.stage == .mustEnrollAgain && $0.secrets.count == 0 }.map(\.profile))
    revocations.use { [weak self] in self?.provenRevocations(in: $0) ?? [] }
  }

  /// The accounts with keys, by profile.
  static func active(_ records: [AccountRecord]) throws(StateStoreError) -> [String: Account] {
    var known: [String: Account] = [:]
    for record in records where record.stage == .active {
      let credentials = try AccountCredentials(record)
      guard let certificate = credentials.serverCertificate else { throw .corrupt(.serverCertificate(of: record.id)) }
      known[record.profile] = Account(record, credentials, certificate)
    }
    return known
  }

  /// The certificate pins stored for the server at enrollment.
  package static func pins(of record: TokenServerRecord) throws(StateStoreError) -> [String] {
    try DeviceCredentials(record).pins
  }

  /// The capabilities now; nil if the board is not known.
  var capabilities: ApprovalCapabilities? { board?.with(drivers) }

  package func validate() async throws(TokenServerError) -> Validation {
    let accounts = accounts.withLock { $0 }
    let capabilities = capabilities
    let request = ValidationRequest(
      softwareVersion: Self.software.version, osVersion: "linux",
      profiles: (Array(accounts.keys) + expired.keys).sorted(), approvalCapabilities: capabilities)
    let isSecondAsk = revocations.isSecondAskDue
    let response = try await client.call(.post, "/validations", body: JSON.encode(request), reconnecting: isSecondAsk)
    let validation = try DeviceClient.decode(ValidationResponse.self, response)
    try validation.configuration.checkProtocolVersions()
    announced.withLock { $0 = capabilities }
    // The server's lists may be long, and name profiles that are not here.
    let removed = Set(accounts.keys).union(expired.keys).intersection(validation.removedProfiles)
    let disenrolled = Set(accounts.keys).intersection(validation.disenrolledProfiles)
    let proven = removed.isEmpty && disenrolled.isEmpty ? [] : provenRevocations(in: response)
    let gone = removed.filter {
      empty.contains($0) || revocations.counts(.profile($0), proven: proven, isSecondAsk: isSecondAsk)
    }
    let keyless = disenrolled.filter { revocations.counts(.keys($0), proven: proven, isSecondAsk: isSecondAsk) }
    if isSecondAsk {
      revocations.forget { subject in
        switch subject {
        case .profile(let profile?): !removed.contains(profile)
        case .keys(let profile?): !disenrolled.contains(profile)
        case .device, .profile(nil), .keys(nil): true
        }
      }
    }
    hasBroker.withLock { $0 = validation.configuration.transports.contains(.mqtt) }
    hasAuthenticators.withLock { $0 = validation.configuration.authenticators == true }
    for account in accounts.values where !removed.contains(account.profile) {
      _ = try await confirmedPINChange(account.id)
      if !account.authenticators.isEmpty { await refreshAuthenticators(of: account) }
    }
    return Validation(
      // An account that is enrolled again gets a new profile; the server reports the old one as removed.
      removedAccounts: gone.compactMap { accounts[$0]?.id ?? expired[$0] },
      disenrolledAccounts: keyless.compactMap { accounts[$0]?.id },
      failureCounts: Dictionary(
        (validation.failureCounts ?? []).compactMap { entry in
          guard let account = accounts[entry.profileID]?.id else { return nil }
          return FailureCounts(max: entry.maxFailureCount, previous: entry.previousFailureCount).map { (account, $0) }
        }
      ) { _, last in last },
      unconfirmedRemovals: removed.subtracting(gone).compactMap { accounts[$0]?.id ?? expired[$0] },
      unconfirmedDisenrollments: disenrolled.subtracting(keyless).compactMap { accounts[$0]?.id })
  }

  /// Notifies the server that the account is removed from this device. The caller then deletes it here even if this
  /// throws.
  package func deregister(_ account: AccountID) async throws(TokenServerError) {
    let profile: String
    if let former = expired.first(where: { $0.value == account }) {
      profile = former.key
    } else {
      profile = try self.account(account).profile
    }
    _ = try await client.call(.delete, "/profiles/\(profile)")
  }

  package func disenroll(_ account: AccountID, pushOnly: Bool) async throws(TokenServerError) {
    let profile = try self.account(account).profile
    _ = try await client.call(
      .delete, "/profiles/\(profile)/\(pushOnly ? "push" : "mobile-auth")", about: profile)
    withoutPush.withLock { profiles in
      if pushOnly { profiles.insert(profile) } else { profiles.remove(profile) }
    }
  }

  package func remainder(of account: AccountID) -> SecretBytes? {
    guard let account = try? self.account(account) else { return nil }
    // Without push alone, the keys are still those that the server has.
    let keepsKeys = withoutPush.withLock { $0.contains(account.profile) }
    return AccountCredentials.remainder(
      pin: account.pin, authenticators: account.authenticators, preferred: account.preferred,
      keys: keepsKeys ? (account.key, account.serverCertificate) : nil)
  }

  /// Unix seconds by the server's clock, for boards without a clock; nil before the first response and after the expiry
  /// of the server's certificate.
  package var serverTime: Int64? { get async { await client.vouchedTime } }

  func profile(of id: AccountID) -> String? {
    accounts.withLock { $0.values.first { $0.id == id }?.profile }
  }

  func account(_ id: AccountID) throws(TokenServerError) -> Account {
    guard let found = accounts.withLock({ $0.values.first { $0.id == id } }) else { throw .notEnrolled }
    return found
  }

  func account(profile: String) -> Account? { accounts.withLock { $0[profile] } }

  /// Changes the credentials of an account, durably, with an entry in the audit chain. What another process changes
  /// meanwhile stays; `change` is then called again.
  /// - Throws: `.notFound` if there is no such account, also if it was removed meanwhile.
  func change(
    _ profile: String, _ entry: AuditEntry? = nil, _ change: (inout AccountCredentials) -> Void
  ) throws(StateStoreError) {
    _ = try changeIfNeeded(profile, entry) { credentials in
      change(&credentials)
      return true
    }
  }

  /// As above; if `change` returns false, nothing is written.
  /// - Returns: what `change` returned.
  func changeIfNeeded(
    _ profile: String, _ entry: AuditEntry?, _ change: (inout AccountCredentials) -> Bool
  ) throws(StateStoreError) -> Bool {
    try changing.withLock { _ throws(StateStoreError) in
      while true {
        guard let record = try registry.accounts().first(where: { $0.server == id && $0.profile == profile }) else {
          throw .notFound(.profile(profile, id))
        }
        var credentials = try AccountCredentials(record)
        guard change(&credentials) else { return false }
        guard try registry.change(record, .put(credentials.stored(in: record), entry)) else { continue }
        accounts.withLock { accounts in
          accounts[profile]?.pin = credentials.pin
          accounts[profile]?.authenticators = credentials.authenticators
          accounts[profile]?.preferred = credentials.preferred
        }
        return true
      }
    }
  }
}
