// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import ServerBackends
import Synchronization

/// A server client that can ask its server to remove accounts. It records them.
final class DeregisteringClient: Deregistration, ScriptedForwarding {
  let scripted = ScriptedServerClient()
  private let fault: TokenServerError?
  private let accounts = Mutex<[AccountID]>([])

  /// - Parameter fault: thrown by each removal.
  init(fault: TokenServerError? = nil) { self.fault = fault }

  var deregistered: [AccountID] { accounts.withLock { $0 } }

  func deregister(_ account: AccountID) async throws(TokenServerError) {
    accounts.withLock { $0.append(account) }
    if let fault { throw fault }
  }
}
