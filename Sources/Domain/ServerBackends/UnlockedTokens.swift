// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets
import Synchronization

/// Refresh tokens that a right PIN has decrypted since this process started: the tokens of fingerprints, whose match is
/// only a yes of this token. They are in locked memory alone, and for a limited time; without power, the PIN is needed
/// again. Outlives the clients of the servers.
package final class UnlockedTokens: Sendable {
  package struct Name: Hashable, Sendable {
    package let server: TokenServerID
    package let profile: String
    package let authenticator: String

    package init(server: TokenServerID, profile: String, authenticator: String) {
      self.server = server
      self.profile = profile
      self.authenticator = authenticator
    }
  }

  private struct Entry {
    let token: SecretBytes
    let end: MonotonicInstant
  }

  /// The time from a right PIN for which a token is usable.
  package let lifetime: Duration
  private let entries = Mutex<[Name: Entry]>([:])

  package init(lifetime: Duration = .seconds(12 * 3600)) { self.lifetime = lifetime }

  /// - Returns: nil without a right PIN within `lifetime`.
  package func token(_ name: Name, at now: MonotonicInstant) -> SecretBytes? {
    entries.withLock { entries in
      entries = entries.filter { $0.value.end > now }
      return entries[name]?.token
    }
  }

  package func put(_ token: SecretBytes, _ name: Name, at now: MonotonicInstant) {
    entries.withLock { $0[name] = Entry(token: token, end: now + lifetime) }
  }

  /// Makes fingerprints that stand in for an account usable: its PIN, which this token verifies, was right.
  package func unlock(_ standIns: [StandIn], of profile: String, at server: TokenServerID, now: MonotonicInstant) {
    for standIn in standIns where standIn.proof == .finger {
      let name = Name(server: server, profile: profile, authenticator: standIn.identifier)
      put(SecretBytes(copying: []), name, at: now)
    }
  }

  package func remove(_ name: Name) { entries.withLock { _ = $0.removeValue(forKey: name) } }
}
