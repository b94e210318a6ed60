// SPDX-License-Identifier: Apache-2.0
import DisplayText
import MobileAuth
import Secrets

/// The stored state of one account at AM.
struct Mechanism: Sendable {
  /// The members that are not secret. Policies, mailbox and PIN are stored in fields of the account record.
  struct Metadata: Sendable, Equatable {
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

  struct Registration: Sendable, Equatable {
    var messageID: String
    var challenge: [UInt8]
  }

  var metadata: Metadata
  let secret: SharedSecret

  init(metadata: Metadata, secret: SharedSecret) {
    self.metadata = metadata
    self.secret = secret
  }

  /// Decodes an account record.
  /// - Returns: nil for an account whose keys were deleted.
  /// - Throws: `.corrupt` if the record is not in this format.
  init?(_ record: AccountRecord) throws(StateStoreError) {
    if record.secrets.count == 0 { return nil }
    guard let fields = SecretFields(encoded: record.secrets), let secret = fields[MechanismTag.secret],
      let metadata = Metadata(fields, record)
    else { throw .corrupt(.keys(of: record.id)) }
    self.metadata = metadata
    self.secret = SharedSecret(bytes: secret)
  }

  /// Returns the account with this mechanism. Its lock is unchanged.
  func stored(in account: AccountRecord) -> AccountRecord {
    var fields = SecretFields()
    fields[MechanismTag.secret] = secret.bytes
    metadata.write(to: &fields)
    var account = account
    account.pin = metadata.pinLength.map { PINMetadata(.token, length: $0) }
    account.policies = metadata.policies
    account.displayName = metadata.accountName.sanitized
    account.delivery = DeliveryAddress(metadata.deviceToken, wanted: metadata.wantedDeviceToken)
    account.secrets = fields.encoded
    return account
  }
}
