// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
import Secrets
import Synchronization

/// A client of a server that asks for a biometric check, and leaves it to the device how the user is checked.
package protocol BiometricChecks: TokenServerClient {
  /// Nil if the client was made without storage.
  var standIns: StandIns? { get }
}

/// The authenticators that stand for the biometric checks of one server, which does not know them: this token verifies
/// what they answer.
package final class StandIns: Sendable {
  /// The number of wrong signatures in a row after which a registration ends.
  static let mostFailures = 3

  private struct Account {
    let profile: String
    var standIns: [StandIn]
    /// The wrong signatures in a row, by identifier.
    var failures: [String: Int] = [:]
  }

  private let server: TokenServerID
  /// The host name, for security keys.
  private let host: String
  private let registry: any SharedEnrollmentRegistry
  private let drivers: AuthenticatorDrivers
  private let unlocked: UnlockedTokens
  private let environment: TokenEnvironment
  private let accounts: Mutex<[AccountID: Account]>

  /// - Parameters:
  ///   - accounts: those whose server asks for biometric checks.
  ///   - host: the host name of the server.
  ///   - unlocked: outlives this object.
  package init(
    of accounts: [AccountRecord], at server: TokenServerID, host: String, registry: any SharedEnrollmentRegistry,
    drivers: AuthenticatorDrivers, unlocked: UnlockedTokens, in environment: TokenEnvironment
  ) {
    self.server = server
    self.host = host
    self.registry = registry
    self.drivers = drivers
    self.unlocked = unlocked
    self.environment = environment
    self.accounts = Mutex(
      Dictionary(accounts.map { ($0.id, Account(profile: $0.profile, standIns: $0.standIns)) }) { first, _ in first })
  }

  // MARK: Requests

  /// The challenge of a request with a biometric check: the authenticators that can be used now, and the PIN.
  /// - Parameter pin: the challenge without them.
  package func challenge(of request: TransactionID, for account: AccountID, orPIN pin: Challenge) -> Challenge {
    guard let challenge = CustomChallenge(sources(of: account, request), fallback: pin.pin, server: host) else {
      return pin
    }
    return .custom(challenge)
  }

  private func sources(of id: AccountID, _ request: TransactionID) -> [AuthenticatorSource] {
    guard let account = account(id) else { return [] }
    return account.standIns.compactMap { standIn in
      guard let driver = driver(of: standIn.identifier), driver.kind == standIn.kind, isUnlocked(standIn, of: account)
      else { return nil }
      return AuthenticatorSource(
        authenticator: standIn.identifier, kind: standIn.kind, input: driver.input,
        challenge: SHA256.hash(hashed(.push, standIn.identifier, account, request.text)),
        registration: standIn.registration)
    }
  }

  /// Verifies what an authenticator has answered to a request.
  /// - Throws: `.authenticatorFailed`.
  package func verify(_ response: ChallengeResponse) throws(TokenServerError) {
    let pending = response.request.pending
    guard let id = response.authenticator, let data = response.data, let account = account(pending.account),
      let standIn = account.standIns.first(where: { $0.identifier == id })
    else { throw Self.failure("the authenticator was deregistered", number: 9022, isRevoked: true) }
    do {
      if standIn.proof == .finger { try requireCurrent(standIn, of: account, response.request.contents.challenge) }
      try verify(data, by: standIn.proof, hashed(.push, id, account, pending.transaction.text))
      note(failures: 0, of: id, pending.account)
    } catch {
      let failures = (account.failures[id] ?? 0) + 1
      note(failures: failures, of: id, pending.account)
      guard failures >= Self.mostFailures else { throw Self.failure("\(error)", number: 9027) }
      revoke(id, of: pending.account, because: "\(failures) wrong signatures")
      throw Self.failure("\(error)", number: 9027, isRevoked: true)
    }
  }

  /// A request can have been opened before the finger was replaced, or while it was usable.
  private func requireCurrent(
    _ standIn: StandIn, of account: Account, _ challenge: Challenge
  ) throws(SignatureError) {
    guard case .custom(let custom) = challenge, isUnlocked(standIn, of: account),
      custom.sources.contains(where: {
        $0.authenticator == standIn.identifier && $0.registration == standIn.registration
      })
    else { throw SignatureError("the fingerprint was replaced, or needs the PIN again") }
  }

  private func verify(
    _ data: AuthenticatorData, by proof: StandIn.Proof, _ hashed: [UInt8]
  ) throws(SignatureError) {
    let (key, scheme): ([UInt8], AuthenticatorSignature.Scheme)
    switch proof {
    // The reader has compared it.
    case .finger: return
    case .badge(let point): (key, scheme) = (point, .badge)
    case .securityKey(let point): (key, scheme) = (point, .securityKey(relyingParty: host))
    }
    guard let signed = SignedAnswer(data) else { throw SignatureError("its data is no signature") }
    guard let key = P256PublicKey(uncompressed: key) else { throw SignatureError("its key is not on P-256") }
    do { try signed.signature.verify(hashed, by: key, as: scheme) } catch { throw SignatureError("\(error)") }
  }

  private static func failure(_ why: String, number: Int, isRevoked: Bool = false) -> TokenServerError {
    .authenticatorFailed(AuthenticatorFailure(number: number, reason: why, isRevoked: isRevoked))
  }

  // MARK: The right PIN

  /// Makes the fingerprints of an account usable. A match is only a yes of this token, so that it counts only after a
  /// right PIN since power-on, and for a limited time.
  package func noteRightPIN(of id: AccountID) {
    guard let account = account(id) else { return }
    unlocked.unlock(account.standIns, of: account.profile, at: server, now: environment.now)
  }

  private func isUnlocked(_ standIn: StandIn, of account: Account) -> Bool {
    standIn.proof != .finger || unlocked.token(name(of: standIn, account), at: environment.now) != nil
  }

  private func name(of standIn: StandIn, _ account: Account) -> UnlockedTokens.Name {
    UnlockedTokens.Name(server: server, profile: account.profile, authenticator: standIn.identifier)
  }

  // MARK: Registrations

  /// What stands in for an account, or could.
  /// - Throws: `AuthenticatorError.noBiometricChecks`.
  package func all(of record: AccountRecord) throws(AuthenticatorError) -> [Authenticator] {
    guard let account = account(record.id) else { throw .noBiometricChecks(record.id) }
    let registered = account.standIns.map { standIn in
      Authenticator(
        identifier: standIn.identifier, name: standIn.identifier, kind: standIn.kind, isRegistered: true,
        isSupported: driver(of: standIn.identifier)?.kind == standIn.kind && isUnlocked(standIn, of: account))
    }
    let others = [Authenticator.Kind.biometric, .custom].flatMap { kind in
      drivers.usable(as: kind).filter { driver(of: $0) != nil && registered[$0] == nil }.map {
        Authenticator(identifier: $0, name: $0, kind: kind, isRegistered: false, isSupported: true)
      }
    }
    let pin = Authenticator(
      identifier: Authenticator.pinIdentifier, name: "PIN", kind: .pin, isRegistered: true, isSupported: true)
    return (record.pin == nil ? [] : [pin]) + registered + others
  }

  /// The driver that can be asked now. A typed code proves nothing that this token could verify.
  func driver(of authenticator: String) -> (any AuthenticatorDriver)? {
    let driver =
      drivers.usable(authenticator, as: .biometric) ?? drivers.usable(authenticator, as: .custom)
    return driver?.input == .keypadCode ? nil : driver
  }

  /// The use of a driver for a registration.
  func registration(of authenticator: String, for id: AccountID) throws(AuthenticatorError) -> StandInRegistration {
    guard let account = account(id) else { throw .noBiometricChecks(id) }
    let hashed = hashed(.registration, authenticator, account, environment.makeUUID())
    return StandInRegistration(
      call: DriverCall(
        step: .register, server: host, account: id.text, authenticator: authenticator, challenge: SHA256.hash(hashed)),
      hashed: hashed)
  }

  /// What to store of a registration.
  /// - Throws: `AuthenticatorError.unverifiable` for data of a custom authenticator that is no signature.
  func standIn(
    of registration: StandInRegistration, _ data: AuthenticatorData, as kind: Authenticator.Kind
  ) throws(AuthenticatorError) -> StandIn {
    let id = registration.call.authenticator
    guard kind != .biometric else { return StandIn(id, .finger, registration: data.registration) }
    guard let signed = SignedAnswer(data), let key = signed.publicKey else {
      throw .unverifiable(id, "its data is no signature")
    }
    let proof: StandIn.Proof = signed.isOfSecurityKey ? .securityKey(key: key) : .badge(key: key)
    do { try verify(data, by: proof, registration.hashed) } catch { throw .unverifiable(id, "\(error)") }
    return StandIn(id, proof, registration: data.registration)
  }

  /// Stores an authenticator, in place of one with the same identifier.
  func add(_ standIn: StandIn, to id: AccountID) throws {
    try change(id, .authenticatorRegistered, standIn.identifier) { standIns in
      standIns.removeAll { $0.identifier == standIn.identifier }
      standIns.append(standIn)
    }
    noteRightPIN(of: id)
  }

  func remove(_ authenticator: String, of id: AccountID) throws {
    try change(id, .authenticatorDeregistered, authenticator) { $0.removeAll { $0.identifier == authenticator } }
  }

  /// Ends a registration that has failed too often.
  package func revoke(_ authenticator: String, of id: AccountID, because why: String) {
    // First here: it must not be usable if the storage fails.
    forget(authenticator, of: id)
    do {
      try change(id, .authenticatorRevoked, "\(authenticator): \(why)") {
        $0.removeAll { $0.identifier == authenticator }
      }
      let failure = AuthenticationStep.Failure(number: 9022, reason: why)
      environment.report(.step(AuthenticationStep(.revoked(failure), of: id, authenticator: authenticator)))
    } catch {
      environment.report(.trouble(id, "\(authenticator) could not be removed: \(error)"))
    }
  }

  private func change(
    _ id: AccountID, _ kind: AuditEntry.Kind, _ detail: String, _ body: (inout [StandIn]) -> Void
  ) throws {
    let entry = environment.auditEntry(kind, account: id, detail: detail)
    let stored = try registry.update(id, noting: entry) { record in
      var record = record
      body(&record.standIns)
      return record
    }
    guard let stored else { throw StateStoreError.notFound(.account(id)) }
    accounts.withLock { accounts in
      guard let account = accounts[id] else { return }
      accounts[id]?.standIns = stored.standIns
      for standIn in account.standIns + stored.standIns
      where account.standIns.contains(standIn) != stored.standIns.contains(standIn) {
        accounts[id]?.failures[standIn.identifier] = nil
      }
      for former in account.standIns where !stored.standIns.contains(former) {
        unlocked.remove(name(of: former, account))
      }
    }
    environment.report(.audited(entry))
  }

  // MARK: State

  private func account(_ id: AccountID) -> Account? { accounts.withLock { $0[id] } }

  private func forget(_ authenticator: String, of id: AccountID) {
    accounts.withLock { accounts in
      guard let account = accounts[id] else { return }
      for standIn in account.standIns where standIn.identifier == authenticator {
        unlocked.remove(name(of: standIn, account))
      }
      accounts[id]?.standIns.removeAll { $0.identifier == authenticator }
      accounts[id]?.failures[authenticator] = nil
    }
  }

  private func note(failures: Int, of authenticator: String, _ id: AccountID) {
    accounts.withLock { $0[id]?.failures[authenticator] = failures }
  }

  private enum Purpose: String { case registration, push }

  /// The bytes whose SHA-256 is a challenge: one line for each value. No value contains a line feed.
  private func hashed(_ purpose: Purpose, _ authenticator: String, _ account: Account, _ nonce: String) -> [UInt8] {
    let lines = [
      "approval-token/stand-in/v1", purpose.rawValue, server.text, account.profile, authenticator, nonce,
    ]
    return Array(lines.joined(separator: "\n").utf8)
  }
}

/// One registration: the use of the driver, and the bytes that its challenge hashes.
struct StandInRegistration {
  let call: DriverCall
  let hashed: [UInt8]
}

/// Why an answer does not prove the user.
private struct SignatureError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
