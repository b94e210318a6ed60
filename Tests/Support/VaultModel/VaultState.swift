// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
package import MobileAuth
import Secrets
package import Vault

/// The readable state of a vault as plain values: of a real vault, or of the model.
package struct VaultState: Sendable, Equatable {
  package struct Server: Sendable, Equatable {
    package var id: TokenServerID
    package var kind: String
    package var url: String
    package var secrets: [UInt8]

    package init(id: TokenServerID, kind: String, url: String, secrets: [UInt8]) {
      self.id = id
      self.kind = kind
      self.url = url
      self.secrets = secrets
    }

    package var record: TokenServerRecord {
      TokenServerRecord(id: id, kind: kind, url: url, secrets: SecretBytes(copying: secrets))
    }
  }

  package struct Account: Sendable, Equatable {
    package var id: AccountID
    package var server: TokenServerID
    package var profile: String
    package var stage: EnrollmentStage
    package var secrets: [UInt8]

    package init(id: AccountID, server: TokenServerID, profile: String, stage: EnrollmentStage, secrets: [UInt8]) {
      self.id = id
      self.server = server
      self.profile = profile
      self.stage = stage
      self.secrets = secrets
    }

    package var record: AccountRecord {
      AccountRecord(id: id, server: server, profile: profile, stage: stage, secrets: SecretBytes(copying: secrets))
    }
  }

  /// The intents contain whether it is being answered.
  package struct Message: Sendable, Equatable {
    package var transaction: TransactionID
    package var account: AccountID
    package var reference: String
    package var receivedAtMilliseconds: Int64
    package var contents: [UInt8]
    package var state = DeliveredMessage.State.pending
    package var answerKey: String?

    package init(
      transaction: TransactionID, account: AccountID, reference: String, receivedAtMilliseconds: Int64,
      contents: [UInt8]
    ) {
      self.transaction = transaction
      self.account = account
      self.reference = reference
      self.receivedAtMilliseconds = receivedAtMilliseconds
      self.contents = contents
    }

    init(_ message: DeliveredMessage) {
      self.init(
        transaction: message.transaction, account: message.account, reference: message.reference,
        receivedAtMilliseconds: message.receivedAtMilliseconds,
        contents: message.contents.withExposedSecret { Array($0) })
      (state, answerKey) = (message.state, message.answerKey)
    }

    var delivered: DeliveredMessage {
      DeliveredMessage(
        transaction: transaction, account: account, reference: reference,
        receivedAtMilliseconds: receivedAtMilliseconds, state: state, answerKey: answerKey,
        contents: SecretBytes(copying: contents))
    }
  }

  package var servers: [Server] = []
  package var accounts: [Account] = []
  package var intents: [AnswerIntent] = []
  package var audit: [AuditEntry] = []
  package var latestKnownTimes: [TokenServerID: Int64] = [:]
  package var pins: [PINRecord] = []
  /// The next counter of each account with one-time passwords.
  package var counters: [AccountID: Int64] = [:]
  /// Ordered by transaction.
  package var messages: [Message] = []

  package init() {}

  /// Reads everything from a real vault.
  package init(of vault: Vault) throws {
    servers = try vault.servers().map {
      Server(id: $0.id, kind: $0.kind, url: $0.url, secrets: $0.secrets.withExposedSecret { Array($0) })
    }
    accounts = try vault.accounts().map {
      Account(
        id: $0.id, server: $0.server, profile: $0.profile, stage: $0.stage,
        secrets: $0.secrets.withExposedSecret { Array($0) })
    }
    intents = try vault.unresolvedIntents()
    audit = try vault.auditRows(newest: .max).compactMap(\.line?.entry)
    for server in servers {
      let time = try vault.latestKnownTime(of: server.id)
      if time > 0 { latestKnownTimes[server.id] = time }
    }
    counters = try vault.oneTimePasswords().compactMapValues { entry in
      if case .counter(let next) = entry.setup.factor { next } else { nil }
    }
    messages = try Operation.transactions.compactMap { try vault.message($0).map { Message($0) } }
    let clock = PatientClock(wallClockMilliseconds: 0)
    pins = try accounts.compactMap { account in
      try vault.pinStatus(of: account.id, in: clock.environment).map { status in
        PINRecord(account: account.id, limit: status.counts.max, failures: status.counts.previous)
      }
    }
  }
}

extension VaultState {
  /// Applies the operation to the model.
  /// - Returns: whether the operation is possible; if not, nothing changes.
  @discardableResult
  package mutating func apply(_ operation: Operation) -> Bool {
    // A message that the vault has already causes no commit: what was deferred stays deferred.
    if case .keepMessage(let message) = operation, hasAccount(of: message), isKnown(message) { return true }
    var next = cleared
    guard next.change(by: operation) else { return false }
    self = next
    return true
  }

  private func hasAccount(of message: Message) -> Bool { accounts.contains { $0.id == message.account } }

  private func isKnown(_ message: Message) -> Bool {
    messages.contains { $0.transaction == message.transaction || $0.reference == message.reference }
  }

  private mutating func change(by operation: Operation) -> Bool {
    switch operation {
    case .putServer(let server):
      servers = (servers.filter { $0.id != server.id } + [server]).sorted { $0.id.text < $1.id.text }
    case .putAccount(let account, let entry):
      guard servers.contains(where: { $0.id == account.server }),
        !accounts.contains(where: { $0.id == account.id && $0.server != account.server })
      else { return false }
      accounts = (accounts.filter { $0.id != account.id } + [account]).sorted { $0.id.text < $1.id.text }
      if let entry { audit.append(entry) }
    case .record(let entry): audit.append(entry)
    case .journal(let intent, let entry):
      guard accounts.contains(where: { $0.id == intent.account && $0.server == intent.server }) else { return false }
      intents = (intents.filter { $0.transaction != intent.transaction } + [intent])
        .sorted { $0.transaction.text < $1.transaction.text }
      audit.append(entry)
    case .settle(let transaction, let entry):
      intents.removeAll { $0.transaction == transaction }
      audit.append(entry)
    case .dropKeys(let id, let entry):
      guard let index = accounts.firstIndex(where: { $0.id == id }) else { return false }
      accounts[index].stage = .mustEnrollAgain
      accounts[index].secrets = []
      pins.removeAll { $0.account == id }
      counters[id] = nil
      messages.removeAll { $0.account == id }
      audit.append(entry)
    case .wipeAccount(let id, let entry):
      guard accounts.contains(where: { $0.id == id }) else { return false }
      forget { $0.id == id }
      audit.append(entry)
    case .wipeServer(let id, let entry):
      guard servers.contains(where: { $0.id == id }) else { return false }
      servers.removeAll { $0.id == id }
      latestKnownTimes[id] = nil
      forget { $0.server == id }
      audit.append(entry)
    case .noteTime(let seconds, let id):
      guard seconds > latestKnownTimes[id] ?? 0 else { return true }
      guard servers.contains(where: { $0.id == id }) else { return false }
      latestKnownTimes[id] = seconds
    case .setPIN, .unlock, .changePIN: return applyToPINs(operation)
    case .keepMessage, .endMessage: return applyToMessages(operation)
    case .keepCounter, .nextCode: return applyToCounters(operation)
    }
    return true
  }

  /// `apply` for the operations on push messages.
  private mutating func applyToMessages(_ operation: Operation) -> Bool {
    switch operation {
    case .keepMessage(let message):
      guard hasAccount(of: message) else { return false }
      if !isKnown(message) { messages = (messages + [message]).sorted { $0.transaction.text < $1.transaction.text } }
    case .endMessage(let transaction, let state, let key):
      for index in messages.indices where messages[index].transaction == transaction {
        guard messages[index].state == .pending else { continue }
        (messages[index].state, messages[index].answerKey) = (state, key)
      }
    default: preconditionFailure("\(operation) is not one of messages")
    }
    return true
  }

  /// `apply` for the operations on one-time passwords.
  private mutating func applyToCounters(_ operation: Operation) -> Bool {
    switch operation {
    case .keepCounter(let account, let server, let entry):
      let isUnfinished = accounts.contains { $0.id == account.id && $0.stage == .enrolling }
      guard counters[account.id] == nil || isUnfinished,
        !accounts.contains(where: { $0.id == account.id && $0.server != server.id })
      else { return false }
      apply(.putServer(server))
      apply(.putAccount(account, entry))
      counters[account.id] = 0
    case .nextCode(let id, let time):
      guard let counter = counters[id] else { return false }
      guard accounts.contains(where: { $0.id == id && $0.stage == .active }) else { return true }
      counters[id] = counter + 1
      audit.append(
        AuditEntry(.codeShown, account: id, detail: "number \(counter)", wallClockMilliseconds: time))
    default: preconditionFailure("\(operation) is not one of one-time passwords")
    }
    return true
  }

  mutating func forget(_ isForgotten: (Account) -> Bool) {
    let gone = Set(accounts.filter(isForgotten).map(\.id))
    accounts.removeAll { gone.contains($0.id) }
    intents.removeAll { gone.contains($0.account) }
    pins.removeAll { gone.contains($0.account) }
    counters = counters.filter { !gone.contains($0.key) }
    messages.removeAll { gone.contains($0.account) }
  }
}
