// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import TokenDaemon

/// Runs a command's body, prints its error on standard error, and exits with the code of the error.
/// - Parameter json: whether the error is printed as JSON: `error`, `code` and, if it has one, `number`.
func reporting(_ json: JSONOption? = nil, _ body: () async throws -> Void) async throws {
  do {
    try await body()
    try flushResults()
  } catch {
    guard let failure = CommandError(explaining: error) else { throw error }
    throw reported(failure, json)
  }
}
