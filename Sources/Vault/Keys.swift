import Cryptography
import Secrets

/// What the vault seals and marks with: one key per purpose, all from the device secret, none on the card.
struct VaultKeys: Sendable {
  private let seal: SecretBytes
  private let mark: SecretBytes
  private let audit: SecretBytes
  /// Makes a PIN's key this device's own.
  let pinBinding: SecretBytes

  init(of deviceSecret: DeviceSecret) {
    seal = HKDF.derive(deviceSecret.bytes, info: "approval-token/vault/seal/v1")
    mark = HKDF.derive(deviceSecret.bytes, info: "approval-token/vault/mark/v1")
    audit = HKDF.derive(deviceSecret.bytes, info: "approval-token/vault/audit/v1")
    pinBinding = HKDF.derive(deviceSecret.bytes, info: "approval-token/pin-binding/v1")
  }

  /// - Parameter place: table and clear columns of the row. They are authenticated with the secret, so that neither
  ///   a box nor what stands beside it can be put into another row.
  func seal(_ secret: SecretBytes, at place: CanonicalBytes) throws(CryptographyError) -> [UInt8] {
    try AES256GCM.seal(secret, key: seal, context: place.bytes)
  }

  func open(_ box: [UInt8], at place: CanonicalBytes) throws(CryptographyError) -> SecretBytes {
    try AES256GCM.open(box, key: seal, context: place.bytes)
  }

  /// Marks a row that holds nothing secret as this vault's own. 32 bytes.
  func mark(_ row: CanonicalBytes) -> [UInt8] { HMACSHA256.authenticate(row.bytes, key: mark) }

  func isMark(_ mark: [UInt8], of row: CanonicalBytes) -> Bool {
    HMACSHA256.isValid(mark, for: row.bytes, key: self.mark)
  }

  /// The mark of an audit line, which depends on the mark of the line before. 32 bytes.
  func auditMark(_ line: CanonicalBytes) -> [UInt8] { HMACSHA256.authenticate(line.bytes, key: audit) }

  func isAuditMark(_ mark: [UInt8], of line: CanonicalBytes) -> Bool {
    HMACSHA256.isValid(mark, for: line.bytes, key: audit)
  }
}

/// One row as bytes, so that no two rows are the same bytes: every text is preceded by its length.
struct CanonicalBytes {
  private(set) var bytes: [UInt8] = []

  /// - Parameters:
  ///   - table: keeps rows of different tables apart.
  ///   - columns: what identifies or describes the row.
  init(_ table: String, _ columns: String?...) {
    add(table)
    for column in columns { add(column) }
  }

  mutating func add(_ number: Int64) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func add(_ text: String?) { add(text.map { Array($0.utf8) }) }

  /// Nil is not empty.
  mutating func add(_ part: [UInt8]?) {
    add(Int64(part?.count ?? -1))
    bytes.append(contentsOf: part ?? [])
  }
}
