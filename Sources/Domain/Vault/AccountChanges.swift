// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite

extension Vault: SharedEnrollmentRegistry {
  package func change(_ known: AccountRecord, _ change: AccountChange) throws(StateStoreError) -> Bool {
    try transaction(erasing: true) { connection in
      guard let kept = try account(known.id, on: connection), kept.isSame(as: known) else { return false }
      switch change {
      case .put(let account, let entry):
        precondition(account.id == known.id, "\(account.id) in place of \(known.id)")
        try put(account, on: connection)
        if let entry { try append(entry, on: connection) }
      case .dropKeys(let entry): try dropKeys(of: known.id, entry, known.enrollment, on: connection)
      case .wipe(let entry): try wipe(account: known.id, entry, on: connection)
      }
      return true
    }
  }
}
