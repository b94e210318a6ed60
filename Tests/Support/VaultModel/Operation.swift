// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
package import MobileAuth
import Secrets
package import Vault

/// An operation on a vault. The same seed and number always result in the same operation, so that a test knows which
/// operation a killed process was running.
package enum Operation: Sendable, Equatable {
  case putServer(VaultState.Server)
  case putAccount(VaultState.Account, AuditEntry?)
  case record(AuditEntry)
  case journal(AnswerIntent, AuditEntry)
  case settle(TransactionID, AuditEntry)
  case dropKeys(AccountID, AuditEntry)
  case wipeAccount(AccountID, AuditEntry)
  case wipeServer(TokenServerID, AuditEntry)
  case noteTime(Int64, TokenServerID)
  /// Times are milliseconds since 1970.
  case setPIN(VaultState.PINRecord, at: Int64)
  case unlock(AccountID, String, at: Int64)
  case changePIN(AccountID, String, to: String, at: Int64)
  /// Counter-based one-time passwords, starting at 0.
  case keepCounter(VaultState.Account, VaultState.Server, AuditEntry)
  case nextCode(AccountID, at: Int64)
  /// Delivered push messages, and the ends of their requests.
  case keepMessage(VaultState.Message)
  case endMessage(TransactionID, DeliveredMessage.State, String)

  static let transactions = (0...5).map { TransactionID("00000000-0000-4000-8000-00000000000\($0)")! }

  /// Few servers, accounts and transactions, so that operations interact.
  package init(number: Int, seed: UInt64) {
    var random = SeededGenerator(seed: seed &+ UInt64(number) &* 0x1_0000_0001)
    let server = TokenServerID("s\(Int.random(in: 1...2, using: &random))")
    let account = AccountID("a\(Int.random(in: 1...4, using: &random))")
    let transaction = Self.transactions[Int.random(in: 0...5, using: &random)]
    let kinds = AuditEntry.Kind.allCases.filter { $0 != .chainBroken }
    let entry = AuditEntry(
      kinds.randomElement(using: &random)!, account: Bool.random(using: &random) ? account : nil,
      transaction: Bool.random(using: &random) ? transaction : nil, detail: "operation \(number)",
      wallClockMilliseconds: Int64(number))
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<2:
      let server = VaultState.Server(id: server, kind: "oath", url: "otpauth:", secrets: [])
      let record = VaultState.Account(
        id: account, server: server.id, profile: "\(number)", stage: .active, secrets: [])
      self = .keepCounter(record, server, entry)
    case 2..<5: self = .nextCode(account, at: Int64(number))
    case 5..<8:
      let secrets = random.bytes(Int.random(in: 0...6_000, using: &random))
      self = .putServer(.init(id: server, kind: "reference", url: "https://\(server):\(number)", secrets: secrets))
    case 8..<26:
      let secrets = random.bytes(Int.random(in: 0...6_000, using: &random))
      let stage: EnrollmentStage = Bool.random(using: &random) ? .active : .enrolling
      let record = VaultState.Account(
        id: account, server: server, profile: "profile \(number)", stage: stage, secrets: secrets)
      self = .putAccount(record, Bool.random(using: &random) ? entry : nil)
    case 26..<31: self = .record(entry)
    case 31..<46:
      let decisions: [Decision] = [.accept, .deny(.declined), .deny(.canceled), .deny(.notMe)]
      var intent = AnswerIntent(
        transaction: transaction, server: server, account: account, idempotencyKey: "key \(number)",
        decision: decisions.randomElement(using: &random)!)
      if Bool.random(using: &random) { intent.body = random.bytes(Int.random(in: 0...600, using: &random)) }
      self = .journal(intent, entry)
    case 46..<56: self = .settle(transaction, entry)
    case 56..<59: self = .dropKeys(account, entry)
    case 59..<61: self = .wipeAccount(account, entry)
    case 61..<62: self = .wipeServer(server, entry)
    case 62..<64: self = .noteTime(Int64.random(in: 0...1_000_000, using: &random), server)
    case 64..<65:
      let message = VaultState.Message(
        transaction: transaction, account: account, reference: "message \(Int.random(in: 0...9, using: &random))",
        receivedAtMilliseconds: Int64(number), contents: random.bytes(Int.random(in: 0...3_000, using: &random)))
      self = .keepMessage(message)
    case 65..<66:
      let states: [DeliveredMessage.State] = [.approved, .denied, .unknown, .failed, .expired]
      self = .endMessage(transaction, states.randomElement(using: &random)!, "key \(number)")
    case 66..<76:
      let keys = random.bytes(Int.random(in: 0...3_000, using: &random))
      let pin = VaultState.PINRecord(
        account: account, limit: Int.random(in: 1...4, using: &random), digits: Self.digits(&random), keys: keys)
      self = .setPIN(pin, at: Int64(number))
    case 76..<92: self = .unlock(account, Self.digits(&random), at: Int64(number))
    default: self = .changePIN(account, Self.digits(&random), to: Self.digits(&random), at: Int64(number))
    }
  }

  /// Codes of a counter, a message that is answered and one that is deleted with its account, a PIN that is set,
  /// changed, typed correctly and wrongly, a right PIN before a message that is known, a right PIN of one account
  /// before an attempt at another one that must wait, and one account that is wiped at its attempt limit.
  package static let beginning: [Operation] = [
    .putServer(.init(id: TokenServerID("s1"), kind: "reference", url: "https://s1", secrets: [])),
    .putAccount(
      .init(id: AccountID("a1"), server: TokenServerID("s1"), profile: "p", stage: .active, secrets: []), nil),
    .keepCounter(
      .init(id: AccountID("a1"), server: TokenServerID("s1"), profile: "p", stage: .active, secrets: []),
      .init(id: TokenServerID("s1"), kind: "oath", url: "otpauth:", secrets: []),
      AuditEntry(.enrolled, wallClockMilliseconds: 0)),
    .nextCode(AccountID("a1"), at: 0),
    .nextCode(AccountID("a1"), at: 0),
    .keepMessage(
      .init(
        transaction: transactions[0], account: AccountID("a1"), reference: "first", receivedAtMilliseconds: 0,
        contents: [1, 2, 3])),
    .keepMessage(
      .init(
        transaction: transactions[1], account: AccountID("a1"), reference: "second", receivedAtMilliseconds: 0,
        contents: [])),
    .keepMessage(
      .init(
        transaction: transactions[2], account: AccountID("a1"), reference: "second", receivedAtMilliseconds: 0,
        contents: [])),
    .journal(
      AnswerIntent(
        transaction: transactions[0], server: TokenServerID("s1"), account: AccountID("a1"), idempotencyKey: "key",
        decision: .accept, body: [4, 5, 6]),
      AuditEntry(.decided, wallClockMilliseconds: 0)),
    .endMessage(transactions[0], .approved, "key"),
    .settle(transactions[0], AuditEntry(.settled, wallClockMilliseconds: 0)),
    .endMessage(transactions[0], .denied, "another"),
    .setPIN(.init(account: AccountID("a1"), limit: 3, digits: "13579", keys: [1, 2, 3]), at: 0),
    .changePIN(AccountID("a1"), "13579", to: "24680", at: 0),
    .unlock(AccountID("a1"), "13579", at: 0),
    .unlock(AccountID("a1"), "24680", at: 0),
    .keepMessage(
      .init(
        transaction: transactions[2], account: AccountID("a1"), reference: "second", receivedAtMilliseconds: 0,
        contents: [])),
    .putAccount(
      .init(id: AccountID("a2"), server: TokenServerID("s1"), profile: "q", stage: .active, secrets: []), nil),
    .setPIN(.init(account: AccountID("a2"), limit: 3, digits: "13579", keys: [4, 5, 6]), at: 0),
    .setPIN(.init(account: AccountID("a1"), limit: 2, digits: "13579", keys: [1, 2, 3]), at: 0),
    .unlock(AccountID("a1"), "24680", at: 0),
    .unlock(AccountID("a2"), "13579", at: 0),
    .unlock(AccountID("a1"), "24680", at: 0),
  ]

  /// The correct PIN in half of the cases.
  private static func digits(_ random: inout SeededGenerator) -> String {
    Bool.random(using: &random) ? "13579" : "24680"
  }

  /// Runs the operation on a real vault.
  package func apply(to vault: Vault) throws(StateStoreError) {
    switch self {
    case .putServer(let server): try vault.put(server.record)
    case .putAccount(let account, let entry): try vault.put(account.record, entry)
    case .record(let entry): try vault.record(entry)
    case .journal(let intent, let entry): try vault.journal(intent, entry)
    case .settle(let transaction, let entry): try vault.resolveIntent(transaction, entry)
    case .dropKeys(let account, let entry): try vault.dropKeys(of: account, entry)
    case .wipeAccount(let account, let entry): try vault.wipe(account: account, entry)
    case .wipeServer(let server, let entry): try vault.wipe(server: server, entry)
    case .noteTime(let seconds, let server): try vault.note(time: seconds, of: server)
    case .setPIN(let pin, let time):
      try vault.setPIN(
        of: pin.account, to: typed(pin.digits), keys: SecretBytes(copying: pin.keys), limit: pin.limit,
        parameters: cheap, in: PatientClock(wallClockMilliseconds: time).environment)
    case .unlock(let account, let digits, let time):
      _ = try PatientClock(wallClockMilliseconds: time).waitOut { environment throws(StateStoreError) in
        try vault.unlock(account, with: typed(digits), in: environment)
      }
    case .keepCounter(let account, let server, let entry):
      let setup = OneTimePasswordSetup(algorithm: .sha1, digits: 6, factor: .counter(0))
      try vault.store(
        setup, secret: SecretBytes(copying: [1, 2, 3]), of: account.record, at: server.record, entry)
    case .nextCode(let account, let time):
      _ = try vault.nextOneTimePassword(
        of: account, in: PatientClock(wallClockMilliseconds: time).environment, notBefore: 0)
    case .keepMessage(let message): _ = try vault.store(message.delivered) {}
    case .endMessage(let transaction, let state, let key):
      vault.end(transaction, as: state, answerKey: key)
      try vault.flush()
    case .changePIN(let account, let old, let new, let time):
      _ = try PatientClock(wallClockMilliseconds: time).waitOut { environment throws(StateStoreError) in
        try vault.changePIN(of: account, from: typed(old), to: typed(new), parameters: cheap, in: environment)
      }
    }
  }
}
