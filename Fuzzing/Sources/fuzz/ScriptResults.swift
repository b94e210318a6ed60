// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

@testable import ServerParsers

/// The output of a script of a custom authenticator.
func readScriptResult(_ bytes: [UInt8]) {
  let result = ScriptResult(parsing: bytes)
  require((2000...5999).contains(result.status), "a result has a status of the table")
  require(result.data.utf8.count <= ScriptResult.largestData, "accepted data keeps the limit")
  require(
    (result.registrationData ?? "").utf8.count <= ScriptResult.largestRegistrationData,
    "accepted registration data keeps the limit")
  _ = result.outcome
  require((try? JSON.decode(CustomInfo.self, from: JSON.encode(result.info))) == result.info, "it survives being sent")
}
