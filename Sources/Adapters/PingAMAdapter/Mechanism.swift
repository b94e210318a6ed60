// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import MobileAuth
import PINProtection
import Secrets

/// The stored state of one account at AM.
struct Mechanism: Sendable {
  /// The members that are not secret.
  struct Metadata: Codable, Sendable, Equatable {
    /// A UUID that this token chose at registration; AM identifies the mechanism by it.
    var uid: String
    var issuer: String
    var accountName: String
    var registrationURL: String
    var authenticationURL: String
    var cookie: String?
    /// AM's identifier of the user.
    var userID: String?
    /// AM's identifier of its record of this device.
    var resourceID: String?
    /// The account's policies as JSON text.
    var policies: String?
    /// The policy with which the user has locked the account; nil if the user has not.
    var lockedBy: String?
    /// The mailbox (device token) that AM has confirmed: where AM's push provider or push delegate sends this account's
    /// messages.
    var deviceToken: String
    /// The mailbox that AM has not confirmed yet; nil if no change is pending.
    var wantedDeviceToken: String?
    /// The number of digits of the PIN stored for this account; nil for no PIN.
    var pinLength: Int?
    /// Whether the secret of the one-time passwords is encrypted with a key derived from that PIN, or will be when the
    /// PIN is chosen; nil means no.
    var codesWantPIN: Bool?
    /// A registration whose result at AM is unknown.
    var registration: Registration?
  }

  struct Registration: Codable, Sendable, Equatable {
    var messageID: String
    var challenge: [UInt8]
  }

  var metadata: Metadata
  let secret: SharedSecret

  private static let version = SecretBytes(copying: Array("pingam 1".utf8))

  init(facts: Metadata, secret: SharedSecret) {
    self.metadata = facts
    self.secret = secret
  }

  /// Decodes an account record.
  /// - Returns: nil for an account whose keys were deleted.
  /// - Throws: `.corrupt` if the record is not in this format.
  init?(_ record: AccountRecord) throws(StateStoreError) {
    if record.secrets.count == 0 { return nil }
    let damaged = StateStoreError.corrupt(.keys(of: record.id))
    guard let parts = record.secrets.parts(), parts.count == 3,
      SecretBytes.constantTimeEqual(parts[0], Self.version)
    else { throw damaged }
    let encoded = parts[1].withExposedSecret { Data($0) }
    do { metadata = try JSONDecoder().decode(Metadata.self, from: encoded) } catch { throw damaged }
    if let length = metadata.pinLength, !PINPolicy.lengths.contains(length) { throw damaged }
    secret = SharedSecret(bytes: parts[2])
  }

  var encoded: SecretBytes {
    let facts: Data
    do { facts = try JSONEncoder().encode(self.metadata) } catch { preconditionFailure("texts and numbers: \(error)") }
    return .joining([Self.version, SecretBytes(copying: facts), secret.bytes])
  }
}
