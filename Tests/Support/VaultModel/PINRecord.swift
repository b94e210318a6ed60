// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
import Secrets
package import Vault

extension VaultState {
  /// The model of a PIN that the token verifies. Two are equal if the vault reports the same for them; digits and keys
  /// are only compared by unlocking, see `pinsThatFail(in:)`.
  package struct PINRecord: Sendable, Equatable {
    package var account: AccountID
    package var limit: Int
    /// In storage.
    package var failures: Int
    /// Whether the vault's next commit clears the count, because the PIN was right.
    package var isCleared = false
    package var digits: String
    package var keys: [UInt8]

    package init(account: AccountID, limit: Int, failures: Int = 0, digits: String = "", keys: [UInt8] = []) {
      self.account = account
      self.limit = limit
      self.failures = failures
      self.digits = digits
      self.keys = keys
    }

    package static func == (one: PINRecord, other: PINRecord) -> Bool {
      one.account == other.account && one.limit == other.limit && one.failures == other.failures
    }
  }

  /// The states that the vault can have during the operation, one per commit; the last one is the state after it
  /// returned.
  /// - Returns: an empty list if the operation is not possible.
  package func steps(of operation: Operation) -> [VaultState] {
    var next = self
    guard next.apply(operation) else { return [] }
    // An attempt that must wait commits what was deferred before it, and nothing else.
    let waiting = cleared
    var counted = waiting
    guard let account = operation.attemptedAccount,
      let index = counted.pins.firstIndex(where: { $0.account == account }),
      counted.pins[index].failures < counted.pins[index].limit
    else { return [next] }
    counted.pins[index].failures += 1
    return [waiting, counted, next]
  }

  /// What the vault that ran the operations reports, and what its next commit makes durable.
  package var cleared: VaultState {
    var state = self
    for index in pins.indices where pins[index].isCleared {
      (state.pins[index].failures, state.pins[index].isCleared) = (0, false)
    }
    return state
  }

  /// What another process finds, for example after a crash: it does not know which PINs were right.
  package var stored: VaultState {
    var state = self
    for index in pins.indices { state.pins[index].isCleared = false }
    return state
  }

  /// Tries every PIN of the model on a real vault, which counts attempts.
  /// - Returns: accounts whose keys differ, or that were not wiped at the attempt limit.
  package func pinsThatFail(in vault: Vault) throws -> [String] {
    try pins.compactMap { pin in
      let result = try PatientClock(wallClockMilliseconds: 0).waitOut { environment throws(StateStoreError) in
        try vault.unlock(pin.account, with: typed(pin.digits), in: environment)
      }
      switch result {
      case .unlocked(let keys) where pin.failures < pin.limit && keys.withExposedSecret({ Array($0) }) == pin.keys:
        return nil
      case .wiped where pin.failures == pin.limit: return nil
      default: return "\(pin.account): \(result)"
      }
    }
  }

  mutating func applyToPINs(_ operation: Operation) -> Bool {
    switch operation {
    case .setPIN(let pin, let time):
      guard accounts.contains(where: { $0.id == pin.account }) else { return false }
      pins = (pins.filter { $0.account != pin.account } + [pin]).sorted { $0.account.text < $1.account.text }
      audit.append(AuditEntry(.pinSet, account: pin.account, wallClockMilliseconds: time))
    case .unlock(let account, let digits, let time):
      return attempt(account, digits, at: time) { pin in
        pin.failures += 1
        pin.isCleared = pin.failures < pin.limit
        if !pin.isCleared { pin.failures = 0 }
      }
    case .changePIN(let account, let old, let new, let time):
      var changed = false
      let done = attempt(account, old, at: time) { pin in
        pin.failures = 0
        pin.digits = new
        changed = true
      }
      if changed { audit.append(AuditEntry(.pinChanged, account: account, wallClockMilliseconds: time)) }
      return done
    default: preconditionFailure("\(operation) is not about a PIN")
    }
    return true
  }

  private mutating func attempt(
    _ account: AccountID, _ digits: String, at time: Int64, onSuccess: (inout PINRecord) -> Void
  ) -> Bool {
    guard let index = pins.firstIndex(where: { $0.account == account }) else { return false }
    let limit = pins[index].limit
    if pins[index].failures == limit {
      wipe(account, "the last of \(limit) attempts was interrupted", at: time)
    } else if pins[index].digits == digits {
      onSuccess(&pins[index])
    } else {
      pins[index].failures += 1
      let failures = pins[index].failures
      if failures == limit {
        wipe(account, "\(limit) wrong PINs", at: time)
      } else {
        audit.append(
          AuditEntry(.pinWrong, account: account, detail: "\(failures) of \(limit)", wallClockMilliseconds: time))
      }
    }
    return true
  }

  private mutating func wipe(_ account: AccountID, _ why: String, at time: Int64) {
    forget { $0.id == account }
    audit.append(AuditEntry(.wiped, account: account, detail: why, wallClockMilliseconds: time))
  }
}

extension Operation {
  fileprivate var attemptedAccount: AccountID? {
    switch self {
    case .unlock(let account, _, _), .changePIN(let account, _, _, _): account
    default: nil
    }
  }
}

/// Cheap parameters, so that an attempt costs a test no time.
let cheap = Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1)

func typed(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }
