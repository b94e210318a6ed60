// SPDX-License-Identifier: Apache-2.0
import Logging
import MobileAuth

extension TokenEvent {
  /// By what the journal finds the event: `event`, and what it concerns: `account`, `server`, `transaction`. Never a
  /// secret.
  var fields: Logger.Metadata {
    switch self {
    case .connected(let server): ["event": "connected", "server": "\(server)"]
    case .disconnected(let server, _): ["event": "disconnected", "server": "\(server)"]
    case .stopped(let server, _): ["event": "stopped", "server": "\(server)"]
    case .retrying(let server, let transaction, _):
      ["event": "retrying", "server": "\(server)", "transaction": "\(transaction)"]
    case .audited(let entry): entry.fields
    case .stateStoreFailed: ["event": "state-store-failed"]
    case .expiredUnannounced(let server, _): ["event": "expired-unannounced", "server": "\(server)"]
    case .counted(let account, _): ["event": "counted", "account": "\(account)"]
    case .accountLost(let account): ["event": "account-lost", "account": "\(account)"]
    case .trouble(let account, _): ["event": "trouble", "account": "\(account)"]
    case .dropped: ["event": "dropped"]
    case .code(let account, let transaction, _):
      ["event": "code", "account": "\(account)", "transaction": "\(transaction)"]
    case .mailboxMoved(let account): ["event": "mailbox-moved", "account": "\(account)"]
    case .step(let step): ["event": "step", "account": "\(step.account)"]
    case .rosterChanged: ["event": "accounts-changed"]
    }
  }
}

extension AuditEntry {
  var fields: Logger.Metadata {
    var fields: Logger.Metadata = ["event": "\(kind.rawValue)"]
    fields["account"] = account.map { "\($0)" }
    fields["transaction"] = transaction.map { "\($0)" }
    return fields
  }
}
