// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit

extension TestToken {
  package struct AuditLine: Decodable, Sendable {
    package let sequence: Int
    package let kind: String
    package let account: String?
    package let transaction: String?
    package let detail: String
  }

  /// The audit chain, or the lines of one transaction.
  package func audit(of transaction: String? = nil) async throws -> [AuditLine] {
    let lines = try await log("--lines", "10000").succeeded().decoded([AuditLine].self)
    return lines.filter { transaction == nil || $0.transaction == transaction }
  }

  /// Waits until the service has logged the end of the transaction, and until it is in the audit chain, which comes
  /// after the log line.
  /// - Parameters:
  ///   - kind: the kind of the entry, `settled` or `unconfirmed`.
  ///   - mark: a position in the log; only later lines count.
  /// - Returns: the outcome.
  package func ending(
    of transaction: String, as kind: String = "settled", from mark: Int = 0
  ) async throws -> String {
    try await log.line(with: "\(kind) request \(transaction)", from: mark)
    return try await eventually("\(kind) of \(transaction) is in the audit chain") {
      try await audit(of: transaction).last { $0.kind == kind }?.detail
    }
  }

  package func provesItsLog() async throws -> Bool {
    struct Verification: Decodable { let intact: Bool }
    return try await log("--verify").decoded(Verification.self).intact
  }

  /// The command `log`, by the program that `approval-token` would start in its place.
  private func log(_ options: String...) async throws -> Outcome {
    try await launch(["log", "--json"] + options, of: Program.service).outcome()
  }
}

extension [TestToken.AuditLine] {
  /// The last outcome in these lines.
  package var ending: String? { last { ["settled", "unconfirmed"].contains($0.kind) }?.detail }
}
