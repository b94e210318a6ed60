// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import PingAMAdapter
import Secrets
import Vault

/// Accounts that only generate one-time passwords (`otpauth://totp/…`, `otpauth://hotp/…`). They have no server
/// connection.
enum OATHAccounts {
  /// Kind of `TokenServerRecord`.
  static let kind = OATHCredential.kind

  private static var server: TokenServerRecord {
    TokenServerRecord(id: TokenServerID("oath"), kind: kind, url: "otpauth:", secrets: SecretBytes(copying: []))
  }

  /// Whether the text has the scheme `otpauth:`, so that it is read as a URI for one-time passwords only.
  static func recognizes(_ text: String) -> Bool {
    RegistrationURI.recognizes(text) && text.drop { $0.isWhitespace }.prefix(8).lowercased() == "otpauth:"
  }

  static func holds(_ account: AccountRecord) -> Bool { account.server == server.id }

  /// Stores a new account.
  /// - Parameters:
  ///   - name: the user's name for it; the account name in the URI by default.
  ///   - pinGuard: a PIN; the secret is encrypted with a key derived from it.
  ///   - progress: called with a progress message for the waiting user.
  static func store(
    _ uri: RegistrationURI, name: String?, in vault: Vault, under pinGuard: PINGuard? = nil, clock: any TokenClock,
    progress: (String) -> Void
  ) throws -> AccountRecord {
    guard let credential = uri.oath, uri.push == nil else {
      throw CommandError(
        .badData, "this is not a URI for one-time passwords only: otpauth://totp/… or otpauth://hotp/…")
    }
    // A second account for the same credential would start its counter again.
    let having = Set(try vault.oneTimePasswords().keys)
    if let other = try uri.namesakes(in: vault).first(where: { having.contains($0.id) }) {
      throw CommandError(
        .usage, "\(credential.profile.sanitized(atMost: 1000)) is already enrolled here, as account \"\(other.id)\"")
    }
    let name = try unusedName(name, for: credential, in: vault)
    let facts = Metadata(pinLength: pinGuard?.pin.count, policies: uri.policies)
    if let violated = try facts.violatedPolicy(isTamperedWith: { vault.isTamperedWith }) {
      throw CommandError(
        .refused,
        "the policy \(violated) in the URI does not hold on this device", number: AccountPolicies.violationNumber)
    }
    for note in try PingAM.notes(onPolicies: uri.policies ?? "{}") { progress(note) }
    let account = AccountRecord(
      id: AccountID(name), server: server.id, profile: credential.profile, stage: .active,
      secrets: facts.encoded)
    let detail = pinGuard == nil ? "one-time passwords" : "one-time passwords, protected by a PIN"
    try vault.store(
      OneTimePasswordSetup(credential), secret: credential.secret, of: account, at: server, under: pinGuard,
      AuditEntry(
        .enrolled, account: account.id, detail: detail, wallClockMilliseconds: clock.wallClockMilliseconds))
    return account
  }

  /// The storage for the one-time password secret of an `mfauth://…` account during its enrollment. The audit chain
  /// gets the entry when the enrollment ends.
  /// - Parameter guarding: makes the PIN protection of the secret from the chosen PIN.
  static func secretStore(
    in vault: Vault, clock: any TokenClock, guarding: @escaping @Sendable (PIN) -> PINGuard
  ) -> OTPSecretStore {
    OTPSecretStore { credential, pin, known, account in
      guard let server = try vault.servers().first(where: { $0.id == account.server }) else {
        throw StateStoreError.unknown("token server \(account.server)")
      }
      let entry = pin.map { _ in
        AuditEntry(
          .pinSet, account: account.id, detail: "for one-time passwords, too",
          wallClockMilliseconds: clock.wallClockMilliseconds)
      }
      try vault.store(
        OneTimePasswordSetup(credential), secret: credential.secret, of: account, at: server,
        under: pin.map(guarding), replacing: known, entry)
    } drop: { account in
      try vault.dropOneTimePasswords(of: account)
    }
  }

  /// The number of digits of the PIN that protects the secret of an account's one-time passwords.
  static func pinLength(of account: AccountRecord) throws -> Int? {
    if let facts = Metadata(account) { return facts.pinLength }
    return try PingAM.pinLength(of: account)
  }

  /// The account's metadata, stored beside the secret.
  struct Metadata {
    /// The number of digits of the PIN that protects the secret; nil without a PIN.
    var pinLength: Int?
    /// JSON as received. The account is locked while a policy in it does not hold.
    var policies: String?
    /// Whether the user has locked the account.
    var isLocked = false

    private static let lockMark = "locked"

    init(pinLength: Int?, policies: String?) { (self.pinLength, self.policies) = (pinLength, policies) }

    /// The metadata of an account that only generates one-time passwords; nil for other accounts.
    init?(_ account: AccountRecord) {
      guard holds(account) else { return nil }
      let parts = account.secrets.withExposedSecret { String(decoding: $0, as: UTF8.self) }
        .split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
      let words = parts.first?.split(separator: " ").map(String.init) ?? []
      // A length that no PIN can have is ignored: no such PIN can be typed.
      pinLength = words.first.flatMap { Int($0) }.flatMap { PINPolicy.lengths.contains($0) ? $0 : nil }
      isLocked = words.contains(Self.lockMark)
      policies = parts.count > 1 ? String(parts[1]) : nil
    }

    /// The stored form: a line with the PIN length and the word "locked", then the policies as received.
    var encoded: SecretBytes {
      let words: [String?] = [pinLength.map { String($0) }, isLocked ? Self.lockMark : nil]
      let text = words.compactMap(\.self).joined(separator: " ") + (policies.map { "\n" + $0 } ?? "")
      return SecretBytes(copying: Array(text.utf8))
    }

    func lock(isTamperedWith: () -> Bool) throws -> AccountLock? {
      if isLocked { return .manual(policy: nil) }
      return try violatedPolicy(isTamperedWith: isTamperedWith).map { .byPolicy($0) }
    }

    func violatedPolicy(isTamperedWith: () -> Bool) throws -> String? {
      guard let policies else { return nil }
      return try PingAM.violatedPolicy(
        among: policies, hasPIN: pinLength != nil, isTamperedWith: isTamperedWith)
    }
  }

  private static func unusedName(_ wanted: String?, for credential: OATHCredential, in vault: Vault) throws -> String {
    let name = wanted ?? credential.accountName
    guard isAccountName(name) else {
      throw CommandError(
        .usage,
        "\"\(name.sanitized(atMost: 1000))\" is not a valid account name (1 to 64 bytes, no blanks); choose one "
          + "with --name"
      )
    }
    guard try !vault.accounts().contains(where: { $0.id.text == name }) else {
      throw CommandError(.usage, "an account \"\(name)\" already exists; choose another name with --name")
    }
    return name
  }
}

extension OneTimePasswordSetup {
  init(_ credential: OATHCredential) {
    let factor: Factor =
      switch credential.factor {
      case .counter(let next): .counter(Int64(clamping: next))
      case .period(let seconds): .period(seconds)
      }
    self.init(algorithm: .init(credential.algorithm), digits: credential.digits, factor: factor)
  }
}

extension OneTimePassword.Algorithm {
  fileprivate init(_ algorithm: OATHCredential.Algorithm) {
    self =
      switch algorithm {
      case .md5: .md5
      case .sha1: .sha1
      case .sha224: .sha224
      case .sha256: .sha256
      case .sha384: .sha384
      case .sha512: .sha512
      }
  }
}
