// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import Secrets

/// The keys of an enrolled token: its signing key and the server's public key.
struct TokenKeys: Sendable {
  let device: DeviceKey
  /// The server sends this key once, at enrollment.
  let server: RSAPublicKey
  /// Whether the user must type a PIN before each approval, as required by the server's administrator or chosen by the
  /// user: every account with a PIN. Stored as the account's PIN.
  var wantsPIN: Bool
}

/// An enrollment request whose result at the server is unknown.
struct OpenEnrollment: Sendable {
  let key: DeviceKey
  /// The enrollment URI, which contains the one-time credential.
  let uri: String
  /// Milliseconds since 1970; nil if the board's clock was not set.
  let giveUpAt: Int64?
}

/// The stored state of one account. A new enrollment keeps `active` unchanged until the server has accepted the new
/// keys.
struct PushCredentials: Sendable {
  private enum Tag: UInt16 {
    case deviceKey = 1, serverKey, nextKey, uri, giveUpAt, wantsBiometric
  }

  var active: TokenKeys?
  var next: OpenEnrollment?
  /// The number of digits of the account's PIN; not secret. Stored in the account record.
  var pinLength: Int?
  /// Whether the server's administrator requires a fingerprint before each approval.
  var wantsBiometric = false

  init() {}

  init(_ record: AccountRecord) throws(StateStoreError) {
    // An account whose keys were deleted has no credentials.
    let fields = record.secrets.count == 0 ? SecretFields() : SecretFields(encoded: record.secrets)
    guard let fields else { throw .corrupt(.keys(of: record.id)) }
    try self.init(fields, pinLength: record.pin?.length, of: record.id)
  }

  private init(_ fields: SecretFields, pinLength: Int?, of account: AccountID) throws(StateStoreError) {
    self.pinLength = pinLength
    wantsBiometric = fields[Tag.wantsBiometric] != nil
    do {
      if let secret = fields[Tag.deviceKey] {
        let server = fields[Tag.serverKey]?.withExposedSecret { Array($0) } ?? []
        active = TokenKeys(
          device: try DeviceKey(secret: secret), server: try RSAPublicKey(pkcs1: server), wantsPIN: pinLength != nil)
      }
      if let secret = fields[Tag.nextKey] {
        next = OpenEnrollment(
          key: try DeviceKey(secret: secret), uri: fields.text(Tag.uri) ?? "", giveUpAt: fields.number(Tag.giveUpAt))
      }
    } catch { throw .corrupt(.keys(of: account)) }
  }

  /// Returns the account with these credentials and the length of this PIN.
  func stored(in account: AccountRecord) throws(CryptographyError) -> AccountRecord {
    var fields = SecretFields()
    fields[Tag.deviceKey] = try active?.device.exportedSecret()
    fields[Tag.serverKey] = active.map { SecretBytes(copying: $0.server.pkcs1) }
    fields[Tag.nextKey] = try next?.key.exportedSecret()
    fields.set(Tag.uri, text: next?.uri)
    fields.set(Tag.giveUpAt, number: next?.giveUpAt)
    fields.set(Tag.wantsBiometric, text: wantsBiometric ? "" : nil)
    var account = account
    account.pin = pinLength.map { PINMetadata(.token, length: $0) }
    account.secrets = fields.encoded
    return account
  }
}

extension PushCredentials {
  /// Decodes the former encoding: the version "1", PIN length, active device key, server key, "pin" if a PIN is
  /// required, next key, URI and expiry; missing values are empty.
  init(former record: AccountRecord) throws(StateStoreError) {
    guard record.secrets.count > 0 else {
      self.init()
      return
    }
    let corrupt = StateStoreError.corrupt(.keys(of: record.id))
    guard let parts = record.secrets.parts(), parts.count == 8, parts[0].publicText == "1" else { throw corrupt }
    var fields = SecretFields()
    let tags: [(Tag, Int)] = [(.deviceKey, 2), (.serverKey, 3), (.nextKey, 5), (.uri, 6), (.giveUpAt, 7)]
    for (tag, index) in tags where parts[index].count > 0 { fields[tag] = parts[index] }
    var length: Int?
    if parts[1].count > 0 {
      guard let number = Int(parts[1].publicText), PINPolicy.lengths.contains(number) else { throw corrupt }
      length = number
    }
    // A required PIN that does not exist would no longer be required.
    guard parts[4].count == 0 || length != nil else { throw corrupt }
    try self.init(fields, pinLength: length, of: record.id)
  }
}
