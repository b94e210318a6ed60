// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import Secrets
import Testing
import Vault
import VaultModel

/// Cheap parameters, so that an attempt costs a test no time.
let cheap = Scrypt.Parameters(cost: 2, blockSize: 1, parallelization: 1)

func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

func bytes(_ secret: SecretBytes) -> [UInt8] { secret.withExposedSecret { Array($0) } }

extension Vault {
  func setPIN(
    of account: AccountID, to pin: PIN, keys: SecretBytes, limit: Int = 3, at time: Int64 = 1_760_000_000_123
  ) throws(StateStoreError) {
    try setPIN(
      of: account, to: pin, keys: keys, limit: limit, parameters: cheap,
      in: PatientClock(wallClockMilliseconds: time).environment)
  }

  /// Retries without a time limit.
  func unlock(_ account: AccountID, _ digits: String) throws(StateStoreError) -> PINUnlockResult {
    try PatientClock(wallClockMilliseconds: 1_760_000_000_123).waitOut { environment throws(StateStoreError) in
      try unlock(account, with: pin(digits), in: environment)
    }
  }

  func expectWrong(_ account: AccountID, sourceLocation: SourceLocation = #_sourceLocation) throws {
    guard case .wrong = try unlock(account, "00000") else {
      Issue.record("it was not wrong", sourceLocation: sourceLocation)
      return
    }
  }
}

/// The keys as text, for comparison.
extension PINUnlockResult {
  var text: String {
    switch self {
    case .unlocked(let keys): String(decoding: bytes(keys), as: UTF8.self)
    case .wrong(let counts, let wait): "wrong \(counts.previous) of \(counts.max), \(wait.components.seconds) s"
    case .wiped: "wiped"
    case .mustWait(let wait): "wait \(wait.components.seconds) s"
    }
  }
}
