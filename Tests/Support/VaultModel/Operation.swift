public import MobileAuth
import Secrets
public import Vault

/// Something done to a vault. The same seed and number are always the same operation, so that a test knows what a
/// process that it killed was about to do.
public enum Operation: Sendable, Equatable {
  case putServer(VaultState.Server)
  case putAccount(VaultState.Account, AuditEntry?)
  case record(AuditEntry)
  case journal(AnswerIntent, AuditEntry)
  case settle(TransactionID, AuditEntry)
  case dropKeys(AccountID, AuditEntry)
  case wipeAccount(AccountID, AuditEntry)
  case wipeServer(TokenServerID, AuditEntry)
  case noteTime(Int64)

  /// Few servers, accounts and transactions, so that operations meet.
  public init(number: Int, seed: UInt64) {
    var random = SeededGenerator(seed: seed &+ UInt64(number) &* 0x1_0000_0001)
    let server = TokenServerID("s\(Int.random(in: 1...2, using: &random))")
    let account = AccountID("a\(Int.random(in: 1...4, using: &random))")
    let transaction = TransactionID("00000000-0000-4000-8000-00000000000\(Int.random(in: 0...5, using: &random))")!
    let entry = AuditEntry(
      AuditEntry.Kind.allCases.randomElement(using: &random)!, account: Bool.random(using: &random) ? account : nil,
      transaction: Bool.random(using: &random) ? transaction : nil, detail: "operation \(number)",
      wallClockMilliseconds: Int64(number))
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<10:
      let secrets = random.bytes(Int.random(in: 0...6_000, using: &random))
      self = .putServer(.init(id: server, kind: "reference", url: "https://\(server):\(number)", secrets: secrets))
    case 10..<35:
      let secrets = random.bytes(Int.random(in: 0...6_000, using: &random))
      let stage: EnrolmentStage = Bool.random(using: &random) ? .active : .enrolling
      let record = VaultState.Account(
        id: account, server: server, profile: "profile \(number)", stage: stage, secrets: secrets)
      self = .putAccount(record, Bool.random(using: &random) ? entry : nil)
    case 35..<45: self = .record(entry)
    case 45..<70:
      let decisions: [Decision] = [.accept, .deny(.declined), .deny(.cancelled), .deny(.notMe)]
      let intent = AnswerIntent(
        transaction: transaction, server: server, account: account, idempotencyKey: "key \(number)",
        decision: decisions.randomElement(using: &random)!)
      self = .journal(intent, entry)
    case 70..<85: self = .settle(transaction, entry)
    case 85..<90: self = .dropKeys(account, entry)
    case 90..<94: self = .wipeAccount(account, entry)
    case 94..<96: self = .wipeServer(server, entry)
    default: self = .noteTime(Int64.random(in: 0...1_000_000, using: &random))
    }
  }

  /// Does it to a real vault.
  public func apply(to vault: Vault) throws(CustodyFault) {
    switch self {
    case .putServer(let server): try vault.put(server.record)
    case .putAccount(let account, let entry): try vault.put(account.record, entry)
    case .record(let entry): try vault.record(entry)
    case .journal(let intent, let entry): try vault.journal(intent, entry)
    case .settle(let transaction, let entry): try vault.settle(transaction, entry)
    case .dropKeys(let account, let entry): try vault.dropKeys(of: account, entry)
    case .wipeAccount(let account, let entry): try vault.wipe(account: account, entry)
    case .wipeServer(let server, let entry): try vault.wipe(server: server, entry)
    case .noteTime(let seconds): try vault.note(time: seconds)
    }
  }
}
