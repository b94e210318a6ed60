// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import DisplayText
import MobileAuth
import ServerBackends
import TokenDaemon
import Vault

extension Accounts: OneShotCommand {
  struct Response: Encodable {
    var account: String
    var server: String
    var url: String
    var profile: String
    /// The user's name at the server; nil if it names none.
    var displayName: String?
    var stage: String
    /// Why the account is locked; nil if it is not.
    var locked: String?
    /// The origins that `call` may call; nil if there are none.
    var allowedOrigins: [String]?
    /// What the user does so that the account approves requests; nil if it does. Only in the text.
    var remedy: String?

    enum CodingKeys: String, CodingKey {
      case account, server, url, profile
      case displayName = "display_name"
      case stage, locked
      case allowedOrigins = "allowed_origins"
    }

    /// - Parameter record: nil if it cannot be read.
    init(_ account: AccountSummary, _ record: AccountRecord?, _ lock: AccountLock?, remedy: String?) {
      self.account = account.id.text
      server = account.server.text
      url = account.url
      profile = account.profile
      displayName = record?.displayName
      stage = account.stage.text
      locked = lock?.description
      allowedOrigins = record.flatMap { $0.allowedOrigins.isEmpty ? nil : $0.allowedOrigins }
      self.remedy = remedy
    }

    var line: String {
      [account, server, locked ?? stage, displayName, remedy].compactMap(\.self).joined(separator: "  ")
        .sanitized(atMost: 500)
    }
  }

  /// Empty also before the first enrollment.
  func list() throws -> [Response] {
    guard try state.hasVault else {
      try state.requireServiceChoice()
      return []
    }
    let vault = try state.openVault(creating: false)
    let operations = Backends(vault).operations
    return try vault.accountSummaries().map {
      let record = try? vault.account($0.id)
      return Response(
        $0, record, operations.lock(ifReadable: $0.id), remedy: operations.remedy(for: $0, record)?.text)
    }
  }

  package func perform() async throws {
    try await reporting(json) {
      json.print(try list()) { accounts in
        accounts.isEmpty
          ? "no accounts yet: `approval-token enroll URI`"
          : accounts.map(\.line).joined(separator: "\n")
      }
    }
  }
}
