// SPDX-License-Identifier: Apache-2.0
import DisplayText
import HTTP
package import MobileAuth
import ReferenceProtocol
import ServerBackends
import Synchronization

/// The list of an account's authenticators, and what is stored of them.
extension ReferenceServerClient: UserAuthenticators {
  package func authenticators(of id: AccountID) async throws(TokenServerError) -> [Authenticator] {
    let account = try self.account(id)
    let entries = try await synchronizeAuthenticators(of: account)
    let stored = try self.account(id)
    let pin = AuthenticatorEntry.pinIdentifier
    let registered = entries.filter { $0.isRegistered(by: stored) }
    let preferred = registered.contains { $0.identifier == stored.preferred } ? stored.preferred : pin
    return entries.compactMap { entry in
      entry.kind.map { kind in
        Authenticator(
          identifier: entry.identifier, name: entry.name.sanitized(atMost: 64), kind: kind,
          isRegistered: entry.isRegistered(by: stored),
          isPreferred: entry.identifier == preferred && entry.isRegistered(by: stored),
          isSupported: kind == .pin || entry.supported && canUse(entry.identifier, as: kind, by: stored))
      }
    }
  }

  package func storedAuthenticators(of id: AccountID) throws(TokenServerError) -> [Authenticator] {
    let stored = try account(id)
    let pin = AuthenticatorEntry.pinIdentifier
    let others = stored.authenticators.filter { $0.registration == nil }.map { ($0.identifier, $0.kind) }
    return ((stored.pin == nil ? [] : [(pin, .pin)]) + others).map { identifier, kind in
      Authenticator(
        identifier: identifier, name: identifier, kind: kind, isRegistered: true,
        isPreferred: identifier == stored.preferred ?? pin,
        isSupported: kind == .pin || canUse(identifier, as: kind, by: stored))
    }
  }

  package func hasPreference(_ id: AccountID) -> Bool { (try? account(id))?.preferred != nil }

  package func prefer(_ authenticator: String, of id: AccountID) throws(StateStoreError) {
    let account: Account
    do { account = try self.account(id) } catch { throw .notFound(.account(id)) }
    let entry = environment.auditEntry(.authenticatorPreferred, account: id, detail: authenticator)
    try change(account.profile, entry) {
      $0.preferred = authenticator == AuthenticatorEntry.pinIdentifier ? nil : authenticator
    }
    environment.report(.audited(entry))
  }

  /// Whether this token has a source for the authenticator's data now, and its key.
  func canUse(_ authenticator: String, as kind: Authenticator.Kind, by account: Account) -> Bool {
    guard drivers.usable(authenticator, as: kind) != nil else { return false }
    return account.registered(authenticator).map { isUnlocked($0, of: account) } ?? true
  }

  /// Notifies the server of drivers that have become usable, or are no longer, since the last validation.
  private func announceChange() async throws(TokenServerError) {
    guard let capabilities, announced.withLock({ $0 }) != capabilities else { return }
    let request = ValidationRequest(
      softwareVersion: Self.software.version, osVersion: "linux", profiles: [], approvalCapabilities: capabilities)
    _ = try await client.call(.post, "/validations", body: JSON.encode(request))
    announced.withLock { $0 = capabilities }
  }

  /// Compares what is stored with the server's list: resolves interrupted registrations, and forgets what the server
  /// has deregistered.
  /// - Returns: the server's list, without entries that no token can use.
  func synchronizeAuthenticators(of account: Account) async throws(TokenServerError) -> [AuthenticatorEntry] {
    guard let hasAuthenticators = hasAuthenticators.withLock({ $0 }) else {
      throw .unreachable("the token server has not said yet whether it has authenticators besides the PIN; retry")
    }
    guard hasAuthenticators else {
      let pin = AuthenticatorEntry(
        identifier: AuthenticatorEntry.pinIdentifier, name: "PIN", type: .pin, registered: true, supported: true)
      return account.pin == nil ? [] : [pin]
    }
    try await announceChange()
    for known in account.authenticators { try await resolveRegistration(of: known, account) }
    let response = try await client.call(.get, "/profiles/\(account.profile)/authenticators")
    let entries = try DeviceClient.decode(AuthenticatorList.self, response).authenticators
      .filter(\.isUsable).prefix(64)
    let registered = Set(entries.filter(\.registered).map(\.identifier))
    for known in account.authenticators where known.registration == nil && !registered.contains(known.identifier) {
      try forget(known, of: account, because: "the token server has deregistered it")
    }
    return Array(entries)
  }

  /// As `synchronizeAuthenticators`, for a validation, which does not fail with it: each use synchronizes again.
  func refreshAuthenticators(of account: Account) async {
    do { _ = try await synchronizeAuthenticators(of: account) } catch {
      environment.report(.trouble(account.id, "its authenticators could not be listed: \(error)"))
    }
  }

  /// Asks the server about a registration whose activation may not have arrived.
  private func resolveRegistration(
    of known: StoredAuthenticator, _ account: Account
  ) async throws(TokenServerError) {
    guard let registration = known.registration else { return }
    let reply = try await client.call(
      .get, "/profiles/\(account.profile)/authenticators/\(known.identifier)/registrations/\(registration)")
    switch try DeviceClient.decode(AuthenticatorRegistrationStatus.self, reply).state {
    case .pending: break
    case .registered: try store(known, of: account, registration: nil, .authenticatorRegistered)
    case .void: try remove(known, of: account, nil)
    }
  }

  /// Removes an authenticator that the server no longer accepts.
  /// - Parameter info: the result of the script that refused it; nil if none was asked.
  func forget(
    _ authenticator: StoredAuthenticator, of account: Account, because why: String, _ info: AuthenticatorInfo? = nil
  ) throws(TokenServerError) {
    let entry = environment.auditEntry(
      .authenticatorRevoked, account: account.id, detail: "\(authenticator.identifier): \(why)")
    guard try remove(authenticator, of: account, entry) else { return }
    let failure = AuthenticationStep.Failure(
      number: Problem.Slug.authenticatorDeregistered.code, reason: why, info: info)
    environment.report(
      .step(AuthenticationStep(.revoked(failure), of: account.id, authenticator: authenticator.identifier)))
  }

  /// Removes an authenticator and records the entry, unless it was removed, or registered again, meanwhile: the answer
  /// to an attempt and the server's list can both report it.
  /// - Returns: whether it was removed now.
  @discardableResult
  func remove(
    _ authenticator: StoredAuthenticator, of account: Account, _ entry: AuditEntry?
  ) throws(TokenServerError) -> Bool {
    do {
      let isRemoved = try changeIfNeeded(account.profile, entry) { credentials in
        let others = credentials.authenticators.filter { !$0.isSame(as: authenticator) }
        guard others.count < credentials.authenticators.count else { return false }
        credentials.authenticators = others
        if credentials.preferred == authenticator.identifier { credentials.preferred = nil }
        return true
      }
      unlocked.remove(unlockedName(of: authenticator, account))
      if isRemoved, let entry { environment.report(.audited(entry)) }
      return isRemoved
    } catch { throw .refused("\(error)") }
  }

  /// Stores an authenticator, in place of one with the same identifier.
  /// - Parameter registration: that the server must still confirm; nil if it is registered.
  func store(
    _ authenticator: StoredAuthenticator, of account: Account, registration: String?, _ kind: AuditEntry.Kind? = nil
  ) throws(TokenServerError) {
    var authenticator = authenticator
    authenticator.registration = registration
    let entry = kind.map { environment.auditEntry($0, account: account.id, detail: authenticator.identifier) }
    do {
      try change(account.profile, entry) { credentials in
        credentials.authenticators.removeAll { $0.identifier == authenticator.identifier }
        credentials.authenticators.append(authenticator)
      }
    } catch { throw .refused("\(error)") }
    if let entry { environment.report(.audited(entry)) }
  }
}

extension AuthenticatorEntry {
  /// Whether this token can know what it is: its kind is known, and its identifier is a part of URLs.
  fileprivate var isUsable: Bool { kind != nil && Authenticator.isIdentifier(identifier) }

  fileprivate var kind: Authenticator.Kind? {
    switch type {
    case .pin: .pin
    case .biometric: .biometric
    case .custom: .custom
    case .other: nil
    }
  }

  /// An authenticator can be used only if the server and this token both have its key.
  fileprivate func isRegistered(by account: ReferenceServerClient.Account) -> Bool {
    switch type {
    case .pin: account.pin != nil
    default: registered && account.registered(identifier) != nil
    }
  }
}

extension ReferenceServerClient.Account {
  /// - Returns: nil also if the registration was not completed.
  func registered(_ authenticator: String) -> StoredAuthenticator? {
    authenticators.first { $0.identifier == authenticator && $0.registration == nil }
  }
}
