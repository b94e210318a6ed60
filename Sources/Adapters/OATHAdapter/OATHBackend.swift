// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import MobileAuth
import PINProtection
package import RegistrationURIs
package import Secrets
package import ServerBackends

/// Accounts that only generate one-time passwords (`otpauth://totp/…`, `otpauth://hotp/…`). They have no server
/// connection.
package struct OATHBackend: ServerBackend {
  package static let kind = "oath"
  package static let displayName = "one-time passwords"
  package static let uriPrefixes = ["otpauth://totp/", "otpauth://hotp/"]
  package static let lastingSecretSchemes: Set<String> = ["otpauth"]
  package static let enrollmentOptions: Set<EnrollmentOption> = [.pin]

  private static let serverID = TokenServerID("oath")

  private func makeServer() -> TokenServerRecord {
    TokenServerRecord(
      id: Self.serverID, kind: Self.kind, url: "otpauth:", registration: .unregistered,
      secrets: SecretBytes(copying: []))
  }

  let context: BackendContext

  package init(_ context: BackendContext) { self.context = context }

  package static func recognizes(_ uri: String) -> Bool { RegistrationURI.isForOneTimePasswordsOnly(uri) }

  package static func form(of uri: String) throws -> EnrollmentForm {
    _ = try RegistrationURI(uri)
    return EnrollmentForm(enrollmentOptions)
  }

  /// The secret can be encrypted with a key derived from a PIN, which the user chooses and types at the panel.
  package func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    let uri = try RegistrationURI(request.uri)
    if uri.unlock == .biometric, context.settings.pinForBiometric != true {
      throw BackendError(
        .refused,
        "it requires a fingerprint before each code (app_force_unlock=biometric); `pin_for_biometric = true` in [push] "
          + "of the configuration allows the PIN instead")
    }
    guard request.asksPIN || uri.unlock != nil else {
      return try store(uri, name: request.name, under: nil, progress: request.progress)
    }
    guard let chooser = request.pinChooser else {
      throw uri.unlock == nil
        ? BackendError(.usage, "a PIN requires a keypad, and this board has none")
        : BackendError(
          .refused,
          "a PIN is required before each code: enroll while `approval-token serve` runs on a board with a keypad")
    }
    let policy = context.settings.pinPolicy
    request.progress("choose a PIN of \(policy.length) digits: type it on the keypad, press Enter, then repeat")
    let pin = try await chooser.choose(policy)
    let account = try store(uri, name: request.name, under: pin, progress: request.progress)
    try await chooser.confirm()
    return account
  }

  package func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? { nil }

  /// Stores a new account.
  /// - Parameters:
  ///   - name: the user's name for it; the account name in the URI by default.
  ///   - pin: the secret is encrypted with a key derived from it.
  ///   - progress: called with a progress message for the waiting user.
  package func store(
    _ uri: RegistrationURI, name: String?, under pin: PIN?, progress: (String) -> Void
  ) throws -> AccountRecord {
    guard let credential = uri.oath, uri.push == nil else {
      throw BackendError(
        .badData, "this is not a URI for one-time passwords only: otpauth://totp/… or otpauth://hotp/…")
    }
    try context.store.requireNoOtherKind(of: Self.serverID, than: Self.kind)
    // A second account for the same credential would start its counter again.
    let having = try context.store.accountsWithOneTimePasswords()
    if let other = try uri.namesakes(in: context.store).first(where: { having.contains($0.id) }) {
      throw BackendError(
        .usage,
        "\(uri.oneTimePasswordProfile.sanitized(atMost: 1000)) is already enrolled here, as account \"\(other.id)\"")
    }
    let name = try unusedName(name, for: credential)
    let policies = try AccountPolicies(uri.policies)
    if let violated = policies.violation(hasPIN: { pin != nil }, isTamperedWith: { context.store.isTamperedWith }) {
      throw BackendError(
        .refused,
        "the policy \(violated) in the URI does not hold on this device", number: AccountPolicies.violationNumber)
    }
    for name in policies.unknownNames { progress(AccountPolicies.note(onUnknown: name)) }
    var account = AccountRecord(
      id: AccountID(name), server: Self.serverID, profile: uri.oneTimePasswordProfile, stage: .active,
      enrollment: context.environment.makeEnrollmentID(), secrets: SecretBytes(copying: []))
    account.pin = pin.map { PINMetadata(.token, length: $0.count) }
    account.policies = uri.policies
    account.displayName = credential.accountName.sanitized
    let detail = pin == nil ? "one-time passwords" : "one-time passwords, protected by a PIN"
    try context.store(
      credential, of: account, at: makeServer(), under: pin,
      context.environment.auditEntry(.enrolled, account: account.id, detail: detail))
    return account
  }

  private func unusedName(_ wanted: String?, for credential: OATHCredential) throws -> String {
    let name = wanted ?? credential.accountName
    guard isAccountName(name) else {
      throw BackendError(
        .usage,
        "\"\(name.sanitized(atMost: 1000))\" is not a valid account name (1 to 64 bytes, no blanks); choose one "
          + "with --name"
      )
    }
    guard try !context.store.accounts().contains(where: { $0.id.text == name }) else {
      throw BackendError(.usage, "an account \"\(name)\" already exists; choose another name with --name")
    }
    return name
  }
}

extension OATHBackend: AccountLocks {
  package static let locksWithPolicy = false
}

extension OATHBackend: FormerAccounts {
  package static func upgraded(_ former: AccountRecord) throws(StateStoreError) -> AccountRecord {
    let metadata = try FormerMetadata(former)
    var account = former.with(SecretBytes(copying: []))
    account.pin = metadata.pinLength.map { PINMetadata(.token, length: $0) }
    account.lock = metadata.isLocked ? UserLock(policy: nil) : nil
    account.policies = metadata.policies
    return account
  }
}
