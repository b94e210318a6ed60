// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import OpenPGP
import Secrets

/// The stored state of one reference token server: the device key `DK`, the client ID and the certificate pins.
struct DeviceCredentials: Sendable {
  private enum Tag: UInt16 { case deviceKey = 1, clientID, pins }

  var deviceKey: P256PrivateKey
  /// Nil until the server has confirmed the registration.
  var clientID: String?
  var pins: [String]

  init(deviceKey: P256PrivateKey, clientID: String?, pins: [String]) {
    self.deviceKey = deviceKey
    self.clientID = clientID
    self.pins = pins
  }

  /// Reads the former encoding, too; the record is written in the present one when it changes.
  init(_ record: TokenServerRecord) throws(StateStoreError) {
    let fields = SecretFields.isEncoding(record.secrets) ? SecretFields(encoded: record.secrets) : Self.former(record)
    guard let fields, let secret = fields[Tag.deviceKey], let key = try? P256PrivateKey(secret: secret),
      let pins = (fields[Tag.pins] ?? SecretBytes(copying: [])).texts()
    else { throw .corrupt(.registration(at: record.id)) }
    deviceKey = key
    clientID = fields.text(Tag.clientID)
    self.pins = pins
  }

  /// The former encoding: the key, the client ID or nothing, and the pins.
  private static func former(_ record: TokenServerRecord) -> SecretFields? {
    guard let parts = record.secrets.parts(), parts.count >= 2 else { return nil }
    var fields = SecretFields()
    fields[Tag.deviceKey] = parts[0]
    if parts[1].count > 0 { fields[Tag.clientID] = parts[1] }
    fields[Tag.pins] = .joining(Array(parts.dropFirst(2)))
    return fields
  }

  func encoded() throws(CryptographyError) -> SecretBytes {
    var fields = SecretFields()
    fields[Tag.deviceKey] = try deviceKey.exportedSecret()
    fields.set(Tag.clientID, text: clientID)
    fields[Tag.pins] = .joining(pins)
    return fields.encoded
  }
}

/// The stored state of one account: its OpenPGP key `CK`, the server's certificate and the digest of its activation
/// code.
struct AccountCredentials: Sendable {
  enum Tag: UInt16 {
    case key = 1, serverCertificate, codeDigest, pinToken, changeID, nextPINLength, nextPINToken, authenticators,
      preferred
  }

  var key: OpenPGPKey
  /// Nil until the keys are exchanged.
  var serverCertificate: OpenPGPCertificate?
  /// SHA-256 of the one-time activation code: the same code resumes this enrollment.
  var codeDigest: [UInt8]
  /// Set for accounts whose server requires a PIN.
  var pin: AccountPIN?
  /// Authenticators other than the PIN.
  var authenticators: [StoredAuthenticator] = []
  /// The identifier of the preferred authenticator; nil for the PIN.
  var preferred: String?

  init(key: OpenPGPKey, serverCertificate: OpenPGPCertificate?, codeDigest: [UInt8]) {
    self.key = key
    self.serverCertificate = serverCertificate
    self.codeDigest = codeDigest
  }

  init(_ record: AccountRecord) throws(StateStoreError) {
    guard let fields = SecretFields(encoded: record.secrets) else { throw .corrupt(.keys(of: record.id)) }
    try self.init(fields, pinLength: record.pin?.length, of: record.id)
  }

  private init(_ fields: SecretFields, pinLength: Int?, of account: AccountID) throws(StateStoreError) {
    guard let secret = fields[Tag.key], let key = try? OpenPGPKey(secret: secret) else {
      throw .corrupt(.keys(of: account))
    }
    self.key = key
    do {
      serverCertificate = try fields[Tag.serverCertificate].map { certificate in
        try OpenPGPCertificate(parsing: certificate.withExposedSecret { Array($0) })
      }
    } catch { throw .corrupt(.serverCertificate(of: account)) }
    codeDigest = fields[Tag.codeDigest]?.withExposedSecret { Array($0) } ?? []
    guard let authenticators = StoredAuthenticator.decode(fields[Tag.authenticators]) else {
      throw .corrupt(.keys(of: account))
    }
    self.authenticators = authenticators
    preferred = fields.text(Tag.preferred)
    do { pin = try AccountPIN(fields, length: pinLength) } catch { throw .corrupt(.pin(of: account)) }
  }

  /// Returns the account with these credentials and the length of this PIN.
  func stored(in account: AccountRecord) -> AccountRecord {
    var fields = SecretFields()
    fields[Tag.key] = key.secret
    fields[Tag.serverCertificate] = serverCertificate.map { SecretBytes(copying: $0.bytes) }
    fields[Tag.codeDigest] = SecretBytes(copying: codeDigest)
    pin?.write(to: &fields)
    if !authenticators.isEmpty { fields[Tag.authenticators] = .joining(authenticators.map(\.encoded)) }
    fields.set(Tag.preferred, text: preferred)
    var account = account
    account.pin = pin.map { PINMetadata(.server, length: $0.current.length) }
    account.secrets = fields.encoded
    return account
  }
}

extension AccountCredentials {
  /// What stays of an account whose keys are dropped: the PIN and the other authenticators, with which its user can
  /// log in.
  /// - Parameter keys: those that the server still has; nil for none.
  /// - Returns: nil without a PIN.
  static func remainder(
    pin: AccountPIN?, authenticators: [StoredAuthenticator], preferred: String?,
    keys: (own: OpenPGPKey, server: OpenPGPCertificate)?
  ) -> SecretBytes? {
    guard let pin else { return nil }
    var fields = SecretFields()
    if let keys {
      fields[Tag.key] = keys.own.secret
      fields[Tag.serverCertificate] = SecretBytes(copying: keys.server.bytes)
    }
    pin.write(to: &fields)
    if !authenticators.isEmpty { fields[Tag.authenticators] = .joining(authenticators.map(\.encoded)) }
    fields.set(Tag.preferred, text: preferred)
    return fields.encoded
  }

  /// The credentials of an account that must be enrolled again: with its keys, if only its push enrollment was lost.
  /// - Parameter key: a new one, for an account whose keys were dropped. The server's certificate is then missing.
  init(remainderOf record: AccountRecord, or key: OpenPGPKey) throws(StateStoreError) {
    guard var fields = SecretFields(encoded: record.secrets) else { throw .corrupt(.keys(of: record.id)) }
    if fields[Tag.key] == nil || fields[Tag.serverCertificate] == nil {
      fields[Tag.key] = key.secret
      fields[Tag.serverCertificate] = nil
    }
    try self.init(fields, pinLength: record.pin?.length, of: record.id)
  }

  /// Takes a new key.
  mutating func replaceKeys(with key: OpenPGPKey) {
    self.key = key
    serverCertificate = nil
  }

  /// Decodes the former encoding: key, certificate or nothing, code digest; with a PIN its length and token; with a
  /// pending change of the PIN its ID, length and token.
  init(former account: AccountRecord) throws(StateStoreError) {
    guard let parts = account.secrets.parts(), [3, 5, 8].contains(parts.count) else {
      throw .corrupt(.keys(of: account.id))
    }
    var fields = SecretFields()
    fields[Tag.key] = parts[0]
    if parts[1].count > 0 { fields[Tag.serverCertificate] = parts[1] }
    fields[Tag.codeDigest] = parts[2]
    var length: Int?
    if parts.count > 3 {
      length = Int(parts[3].publicText)
      fields[Tag.pinToken] = parts[4]
    }
    for (tag, part) in zip([Tag.changeID, .nextPINLength, .nextPINToken], parts.dropFirst(5)) { fields[tag] = part }
    try self.init(fields, pinLength: length, of: account.id)
  }
}
