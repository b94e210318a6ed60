// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets

/// The vault's keys for encryption and MACs: one key per purpose, derived from the device secret and never stored.
struct VaultKeys: Sendable {
  private let seal: SecretBytes
  private let mac: SecretBytes
  private let audit: SecretBytes
  /// The device-binding key of PINs.
  let pinBinding: SecretBytes
  let brokerClientID: String

  init(of deviceSecret: DeviceSecret) {
    seal = HKDF.derive(deviceSecret.bytes, info: "approval-token/vault/seal/v1")
    mac = HKDF.derive(deviceSecret.bytes, info: "approval-token/vault/mark/v1")
    audit = HKDF.derive(deviceSecret.bytes, info: "approval-token/vault/audit/v1")
    pinBinding = HKDF.derive(deviceSecret.bytes, info: "approval-token/pin-binding/v1")
    brokerClientID = HKDF.derive(deviceSecret.bytes, info: "approval-token/broker-client-id/v1").withExposedSecret {
      "t" + $0.lowercaseHex.prefix(22)
    }
  }

  /// Encrypts a secret.
  /// - Parameter associated: the associated data: table and plaintext columns of the row, so that neither the
  ///   ciphertext nor a column can be moved to another row.
  func seal(_ secret: SecretBytes, at associated: CanonicalBytes) throws(CryptographyError) -> [UInt8] {
    try AES256GCM.seal(secret, key: seal, context: associated.bytes)
  }

  func open(_ ciphertext: [UInt8], at associated: CanonicalBytes) throws(CryptographyError) -> SecretBytes {
    try AES256GCM.open(ciphertext, key: seal, context: associated.bytes)
  }

  /// The MAC of a row without secrets. 32 bytes.
  func mac(_ row: CanonicalBytes) -> [UInt8] { HMACSHA256.authenticate(row.bytes, key: mac) }

  func isValidMAC(_ mac: [UInt8], of row: CanonicalBytes) -> Bool {
    HMACSHA256.isValid(mac, for: row.bytes, key: self.mac)
  }

  /// The MAC of an audit entry, which covers the previous entry's MAC. 32 bytes.
  func auditMAC(_ line: CanonicalBytes) -> [UInt8] { HMACSHA256.authenticate(line.bytes, key: audit) }

  func isValidAuditMAC(_ mac: [UInt8], of line: CanonicalBytes) -> Bool {
    HMACSHA256.isValid(mac, for: line.bytes, key: audit)
  }
}

/// An unambiguous encoding of a row: every text is preceded by its length.
struct CanonicalBytes {
  private(set) var bytes: [UInt8] = []

  /// - Parameters:
  ///   - table: distinguishes rows of different tables.
  ///   - columns: the columns that identify or describe the row.
  init(_ table: String, _ columns: String?...) {
    add(table)
    for column in columns { add(column) }
  }

  mutating func add(_ number: Int64) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func add(_ text: String?) { add(text.map { Array($0.utf8) }) }

  /// Nil and empty differ.
  mutating func add(_ part: [UInt8]?) {
    add(Int64(part?.count ?? -1))
    bytes.append(contentsOf: part ?? [])
  }
}
