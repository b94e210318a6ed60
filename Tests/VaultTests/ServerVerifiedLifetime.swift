// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import OfflineAttack
import PINProtection
import Secrets
import VaultModel

@testable import Vault

/// Accounts whose PINs a server verifies, stored as an adapter does it: a wrapped token among an account's other
/// secrets, two during a change. Every byte that is written to storage is recorded.
final class ServerVerifiedLifetime {
  let fixture: VaultFixture
  let vault: Vault
  /// Every token that was ever wrapped, with its PIN.
  private(set) var wraps: [(token: SecretBytes, pin: String)] = []
  private let log = Log()
  private var current: [AccountID: (keys: SecretBytes, wrapped: WrappedToken, token: SecretBytes)] = [:]

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    let secret = try fixture.deviceSecret()
    vault = try RecordingVFS.recording(fixture.path, in: log.append) { [fixture] in
      try Vault.open(directory: fixture.path, deviceSecret: secret)
    }
    try vault.put(server(acme))
  }

  func enroll(_ id: AccountID, _ digits: String, token: SecretBytes = Random.secret(32)) throws {
    let keys = Random.secret(200)
    try store(id, [keys], .enrolling, nil)
    let wrapped = try wrap(token, digits, cheap)
    current[id] = (keys, wrapped, token)
    try store(id, [keys, wrapped.encoded], .active, entry(.enrolled, id))
  }

  /// Answers a request with this PIN, whatever the server's response.
  func answer(_ id: AccountID, _ digits: String, _ outcome: String) throws {
    _ = try current[id]!.wrapped.unwrap(with: pin(digits), binding: vault.pinBinding)
    let transaction = TransactionID(Random.uuid())!
    try vault.record(entry(.opened, id))
    try vault.journal(intent(transaction, id, key: Random.uuid()), entry(.decided, id, "accept"))
    try vault.resolveIntent(transaction, entry(.settled, id, outcome))
  }

  /// Changes the PIN in two phases, with both tokens in storage in between.
  /// - Parameter token: the server's new token; reusing the old one is the mistake that reveals the PIN.
  func change(
    _ id: AccountID, to digits: String, token: SecretBytes = Random.secret(32), parameters: Scrypt.Parameters = cheap,
    isCommitted: Bool = true
  ) throws {
    let (keys, old, oldToken) = current[id]!
    let new = try wrap(token, digits, parameters)
    try store(id, [keys, old.encoded, new.encoded], .active, nil)
    let (left, leftToken) = isCommitted ? (new, token) : (old, oldToken)
    current[id] = (keys, left, leftToken)
    try store(id, [keys, left.encoded], .active, isCommitted ? entry(.pinChanged, id) : nil)
  }

  /// The token that the account's PIN wraps now.
  func token(of id: AccountID) -> SecretBytes { current[id]!.token }

  /// Everything that was ever written, and everything that the device secret decrypts of every stored state.
  func loot() throws -> Loot {
    let secret = try contents(of: "\(fixture.path)/device-secret")
    var loot = Loot(binding: bytes(vault.pinBinding))
    var random = SeededGenerator(seed: 0)
    var card = SimulatedStorage()
    for event in log.events {
      card.add(event)
      if case .wrote(_, _, let bytes) = event { loot.add(written: bytes) }
      guard case .synced = event else { continue }
      let files = card.files(after: .everythingElse, &random)
      guard files["vault.sqlite3"]?.isEmpty == false, files["vault.sqlite3-wal"] != nil else { continue }
      let copy = try VaultFixture(in: "/dev/shm")
      try write(secret, to: "\(copy.path)/device-secret", mode: 0o400)
      for (name, image) in files { try write(image, to: "\(copy.path)/\(name)") }
      let day = try copy.vault()
      for server in try day.servers() { loot.add(opened: bytes(server.secrets)) }
      for account in try day.accounts() {
        loot.add(opened: bytes(account.secrets))
        let record = try day.snapshot { try PINRecord.find(account.id, on: $0, day.keys) }
        if let record { loot.add(opened: bytes(try record.sealedKeys(day.keys).encoded)) }
      }
    }
    return loot
  }

  private func wrap(_ token: SecretBytes, _ digits: String, _ parameters: Scrypt.Parameters) throws -> WrappedToken {
    wraps.append((token, digits))
    return try WrappedToken.wrap(token, under: pin(digits), binding: vault.pinBinding, parameters: parameters)
  }

  private func store(_ id: AccountID, _ parts: [SecretBytes], _ stage: EnrollmentStage, _ entry: AuditEntry?) throws {
    try vault.put(
      AccountRecord(id: id, server: acme, profile: "profile", stage: stage, secrets: SecretBytes.joining(parts)), entry)
  }
}
