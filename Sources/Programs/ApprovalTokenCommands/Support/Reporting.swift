// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
package import ControlProtocol
import DisplayText
import Glibc
import JSONValues
import MobileAuth

/// Runs a command's body, prints its error on standard error, and exits with the code of the error.
/// - Parameter json: whether the error is printed as JSON: `error`, `code` and, if it has one, `number`.
func reporting(_ json: JSONOption? = nil, _ body: () throws -> Void) throws {
  do { return try body() } catch let failure as CommandError { throw reported(failure, json) }
}

/// Prints a command's error.
/// - Returns: the exit code, to be thrown.
package func reported(_ failure: CommandError, _ json: JSONOption?) -> ExitCode {
  say(
    json?.isWanted == true
      ? String(decoding: JSONMessage.encode(ControlFailure(failure)), as: UTF8.self).escapedForDisplay
      : "approval-token: \(failure.description)")
  return ExitCode(failure.code.rawValue)
}

/// Prints a line on standard error. Progress and errors go to standard error, results to standard output.
package func say(_ line: String) {
  let bytes = Array((line.sanitizedLines + "\n").utf8)
  _ = write(2, bytes, bytes.count)
}

/// Prints a step of a command that waits.
@Sendable package func showProgress(_ step: String) { say("\(step) …") }
