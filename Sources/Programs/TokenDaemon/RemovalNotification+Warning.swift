// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import ServerBackends

extension RemovalNotification {
  package var isConfirmed: Bool { if case .confirmed = self { true } else { false } }

  /// Why the server still lists the removed account, as a message for the user. Nil if it does not.
  package func warning(about account: AccountRecord) -> String? {
    switch self {
    case .confirmed, .withoutServer: nil
    case .unsupported(let server):
      "the server's administrator must delete the account there: \(account.profile) at \(server.url)"
    case .failed(let error): "the token server was not notified: \(explanation(of: error))"
    }
  }
}
