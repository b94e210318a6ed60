// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
package import PINProtection
package import ServerBackends
package import Vault

/// The lower bound for the time of certificate checks, for boards whose clock is not set. Unix seconds: 2026-11-21.
package let releaseTime: Int64 = 1_795_219_200

extension Vault: BackendStore {
  /// Whether the audit chain is broken or cannot be read.
  package var isTamperedWith: Bool {
    if case .intact? = try? verifyAudit() { false } else { true }
  }

  /// Stores the time that a server reported when it was connected, unless it is less than a minute later than the
  /// stored one: each is a write. An error has no consequence but a missing time.
  func noteConnection(at time: Int64, with server: TokenServerID) {
    guard let stored = try? latestKnownTime(of: server), time >= stored + 60 else { return }
    try? note(time: time, of: server)
  }

  package func failureCounts(
    of account: AccountID, in environment: TokenEnvironment
  ) throws(StateStoreError) -> FailureCounts? {
    try pinStatus(of: account, in: environment)?.counts
  }

  package func store(
    _ credential: OATHCredential, of account: AccountRecord, at server: TokenServerRecord, under pin: PINSetting?,
    replacing known: AccountRecord?, _ entry: AuditEntry?
  ) throws(StateStoreError) {
    try store(
      OneTimePasswordSetup(credential), secret: credential.secret, of: account, at: server,
      under: pin, replacing: known, entry)
  }
}

extension OneTimePasswordSetup {
  fileprivate init(_ credential: OATHCredential) {
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

extension Vault {
  /// The servers of accounts, which may be damaged.
  func servers(of accounts: [AccountID]) throws(StateStoreError) -> [TokenServerID] {
    guard !accounts.isEmpty else { return [] }
    return try accountSummaries().filter { accounts.contains($0.id) }.map(\.server)
  }

  /// Deletes answers that may have been sent, and whose records are damaged.
  /// - Returns: an audit entry for each, as appended.
  func takeLostAnswers(in environment: TokenEnvironment) throws(StateStoreError) -> [AuditEntry] {
    try takeDamagedIntents { transaction in
      let fault = StateStoreError.corrupt(.intent(transaction))
      return environment.auditEntry(.unconfirmed, detail: "unknown: \(fault); it is not sent again")
    }
  }
}
