// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Secrets
import Vault

/// What a day writes to storage: the vault's changes of 50 approvals and 1,000 refused requests, made in this process,
/// because the service limits what a server's requests may write in an hour.
enum WearRow {
  private static let (requests, approvals) = (1000, 50)

  static func measure(on stage: Stage) throws -> [Row] {
    let directory = "\(stage.directory)/wear"
    let (server, account) = (TokenServerID("wear"), AccountID("wear"))
    let secret = try DeviceSecret.load(stateDirectory: directory, credentialsDirectory: nil)
    let vault = try Vault.open(directory: directory, deviceSecret: secret, reservesLog: true)
    let nothing = SecretBytes(copying: [UInt8](repeating: 0, count: 2000))
    try vault.put(
      TokenServerRecord(
        id: server, kind: "reference", url: "https://wear.example", registration: EnrollmentID("1"), secrets: nothing))
    try vault.put(
      AccountRecord(
        id: account, server: server, profile: "wear", stage: .active, enrollment: EnrollmentID("2"), secrets: nothing),
      nil)
    let readings = ProcessReadings(processID: getpid())
    guard let before = readings.writtenBytes else { return [] }
    for number in 0..<requests {
      let time = 1_760_000_000_000 + Int64(number) * 86_400
      let transaction = TransactionID(text(of: number))!
      func entry(_ kind: AuditEntry.Kind, _ detail: String) -> AuditEntry {
        AuditEntry(
          kind, account: account, transaction: transaction, detail: detail, wallClockMilliseconds: time)
      }
      if number % (requests / approvals) == 0 {
        vault.enqueue(.record(entry(.announced, "login")))
        vault.enqueue(.record(entry(.opened, "login, confirmation")))
        try vault.journal(
          AnswerIntent(
            transaction: transaction, server: server, account: account, idempotencyKey: transaction.text,
            decision: .accept), entry(.decided, "accept"))
        vault.enqueue(.resolveIntent(transaction, entry(.settled, "approved")))
        try vault.flush()
      }
      for (kind, detail) in [(AuditEntry.Kind.refused, "the account is locked"), (.settled, "expired")] {
        vault.enqueue(.record(entry(kind, detail)))
        try vault.flush()
      }
    }
    guard let after = readings.writtenBytes else { return [] }
    return [
      Row(
        "the vault's changes of 50 approvals and 1,000 refused requests, over a day: written to storage",
        "\(((after - before) / 1_048_576).text(1)) MiB")
    ]
  }

  private static func text(of number: Int) -> String {
    let digits = String(number)
    return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
  }
}
