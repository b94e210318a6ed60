// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import SQLite

/// Maps storage and cryptography errors to `StateStoreError`.
func mappingStateStoreErrors<Result: ~Copyable>(_ body: () throws -> Result) throws(StateStoreError) -> Result {
  do { return try body() } catch { throw stateStoreError(error) }
}

// Once, not for each result.
@inline(never) func stateStoreError(_ error: any Error) -> StateStoreError {
  switch error {
  case let fault as StateStoreError: fault
  case let error as SQLiteError where error.isDamage: .corrupt(.database("\(error)"))
  case let error as SQLiteError: .io(call: error.call, reason: "\(error.message) (SQLite \(error.code))")
  case CryptographyError.libraryFailure(let what): .io(call: "OpenSSL", reason: what)
  case is CryptographyError: .corrupt(.encryptedRecord)
  default: .io(call: "vault", reason: "\(error)")
  }
}
