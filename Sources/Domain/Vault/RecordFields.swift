// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import PINProtection
import Secrets

/// The encrypted part of a server or account: `SecretFields`.
enum RecordFields {
  enum Tag: UInt16 {
    case enrollment = 1
    /// Encoded by the adapter.
    case credentials = 2
    /// "server" or "token".
    case pinVerifier = 3
    case pinLength = 4
    /// Present if the user has locked the account: the policy, or empty.
    case lock = 5
    case policies = 6
    case mailbox = 7
    case wantedMailbox = 8
    case displayName = 9
    /// Texts, joined. Absent if there are none.
    case allowedOrigins = 10
    /// Of each stand-in its identifier, its kind, its key and its registration, joined. Absent if there are none.
    case standIns = 11
    /// See `Vault.commitment`. `Vault.put` keeps it as long as the account has a PIN that this token verifies.
    case pinCommitment = 12
  }

  static func associatedData(ofServer id: TokenServerID, kind: String, url: String) -> CanonicalBytes {
    CanonicalBytes("servers", id.text, kind, url)
  }

  static func associatedData(
    of id: AccountID, _ server: TokenServerID, _ profile: String, _ stage: String
  ) -> CanonicalBytes {
    CanonicalBytes("accounts", id.text, server.text, profile, stage)
  }

  static func make(_ enrollment: EnrollmentID, _ credentials: SecretBytes) -> SecretFields {
    var fields = SecretFields()
    fields.set(Tag.enrollment, text: enrollment.text)
    fields[Tag.credentials] = credentials
    return fields
  }
}

extension TokenServerRecord {
  /// - Throws: `.corrupt` if the decrypted bytes are not in the present format.
  init(id: TokenServerID, kind: String, url: String, encodedFields opened: SecretBytes) throws(StateStoreError) {
    guard let fields = SecretFields(encoded: opened), let registration = fields.text(RecordFields.Tag.enrollment),
      let credentials = fields[RecordFields.Tag.credentials]
    else { throw .corrupt(.server(id)) }
    self.init(id: id, kind: kind, url: url, registration: EnrollmentID(registration), secrets: credentials)
  }

  var encodedFields: SecretBytes { RecordFields.make(registration, secrets).encoded }
}

extension AccountRecord {
  /// - Throws: `.corrupt` if the decrypted bytes are not in the present format.
  init(
    id: AccountID, server: TokenServerID, profile: String, stage: EnrollmentStage, encodedFields opened: SecretBytes
  ) throws(StateStoreError) {
    guard let fields = SecretFields(encoded: opened), let enrollment = fields.text(RecordFields.Tag.enrollment),
      let credentials = fields[RecordFields.Tag.credentials]
    else { throw .corrupt(.account(id)) }
    self.init(
      id: id, server: server, profile: profile, stage: stage, enrollment: EnrollmentID(enrollment),
      secrets: credentials)
    /// A field that is not text must not count as missing: that would remove a lock.
    func text(_ tag: RecordFields.Tag) throws(StateStoreError) -> String? {
      guard let text = fields.text(tag) else {
        if fields[tag] == nil { return nil }
        throw .corrupt(.account(id))
      }
      return text
    }
    pin = try PINMetadata(verifier: text(.pinVerifier), length: text(.pinLength), of: id)
    lock = try text(.lock).map { UserLock(policy: $0.isEmpty ? nil : $0) }
    policies = try text(.policies)
    displayName = try text(.displayName)
    let wanted = try text(.wantedMailbox)
    delivery = try text(.mailbox).map { DeliveryAddress($0, wanted: wanted) }
    if let origins = fields[RecordFields.Tag.allowedOrigins] {
      guard let texts = origins.texts() else { throw .corrupt(.account(id)) }
      allowedOrigins = texts
    }
    if let encoded = fields[RecordFields.Tag.standIns] {
      guard let parts = encoded.parts(), parts.count <= StandIn.most else { throw .corrupt(.account(id)) }
      standIns = try parts.map { part throws(StateStoreError) in
        guard let standIn = StandIn(encoded: part) else { throw .corrupt(.account(id)) }
        return standIn
      }
    }
  }

  /// Without the commitment to the PIN.
  var fields: SecretFields {
    var fields = RecordFields.make(enrollment, secrets)
    fields.set(RecordFields.Tag.pinVerifier, text: pin?.verifier.rawValue)
    fields.set(RecordFields.Tag.pinLength, number: pin?.length)
    fields.set(RecordFields.Tag.lock, text: lock.map { $0.policy ?? "" })
    fields.set(RecordFields.Tag.policies, text: policies)
    fields.set(RecordFields.Tag.displayName, text: displayName)
    fields.set(RecordFields.Tag.mailbox, text: delivery?.mailbox)
    fields.set(RecordFields.Tag.wantedMailbox, text: delivery?.wanted)
    if !allowedOrigins.isEmpty { fields[RecordFields.Tag.allowedOrigins] = .joining(allowedOrigins) }
    if !standIns.isEmpty { fields[RecordFields.Tag.standIns] = .joining(standIns.map(\.encoded)) }
    return fields
  }
}

extension StandIn {
  private enum Kind: String { case finger, badge, securityKey = "security-key" }

  /// - Returns: nil for bytes that are not `encoded`.
  fileprivate init?(encoded: SecretBytes) {
    guard let parts = encoded.parts(), parts.count == 4, let kind = Kind(rawValue: parts[1].publicText) else {
      return nil
    }
    let (key, registration) = (
      parts[2].withExposedSecret { Array($0) }, parts[3].withExposedSecret { Array($0) }
    )
    let proof: Proof =
      switch kind {
      case .finger: .finger
      case .badge: .badge(key: key)
      case .securityKey: .securityKey(key: key)
      }
    self.init(parts[0].publicText, proof, registration: registration)
  }

  fileprivate var encoded: SecretBytes {
    let (kind, key): (Kind, [UInt8]) =
      switch proof {
      case .finger: (.finger, [])
      case .badge(let key): (.badge, key)
      case .securityKey(let key): (.securityKey, key)
      }
    return .joining([
      SecretBytes(copying: Array(identifier.utf8)), SecretBytes(copying: Array(kind.rawValue.utf8)),
      SecretBytes(copying: key), SecretBytes(copying: registration),
    ])
  }
}

extension PINMetadata {
  /// - Throws: `.corrupt` for a length that no PIN has: a prompt for such a PIN would trap.
  fileprivate init?(verifier: String?, length: String?, of account: AccountID) throws(StateStoreError) {
    if verifier == nil, length == nil { return nil }
    guard let verifier = verifier.flatMap(Verifier.init(rawValue:)), let length = length.flatMap({ Int($0) }),
      PINPolicy.lengths.contains(length)
    else { throw .corrupt(.pin(of: account)) }
    self.init(verifier, length: length)
  }
}
