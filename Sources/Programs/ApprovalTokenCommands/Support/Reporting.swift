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
  do {
    try body()
    try flushResults()
  } catch let failure as CommandError { throw reported(failure, json) }
}

/// Writes what was printed to standard output and is still buffered.
/// - Throws: `.unavailable` if that is not possible, for example because the disk is full.
package func flushResults() throws(CommandError) {
  guard fflush(nil) == 0 else {
    throw CommandError(.unavailable, "cannot write to standard output: \(String(cString: strerror(errno)))")
  }
}

extension CommandError {
  /// The service has closed a connection on which it sent lines until then.
  static let endOfLines = CommandError(
    .unavailable, "the service has ended the connection: it ends, or its lines were read too slowly")
}

/// Prints a command's error.
/// - Returns: the exit code, to be thrown.
package func reported(_ failure: CommandError, _ json: JSONOption?) -> ExitCode {
  printError(errorLine(failure, asJSON: json?.isWanted == true))
  return ExitCode(failure.code.rawValue)
}

/// A command's error as a line, or lines, for a terminal; one line of JSON is never shortened.
func errorLine(_ failure: CommandError, asJSON: Bool) -> String {
  asJSON
    ? String(decoding: JSONMessage.encode(ControlFailure(failure)), as: UTF8.self).escapedForDisplay
    : "approval-token: \(failure.description)".sanitizedLines
}

/// Prints a line on standard error. Progress and errors go to standard error, results to standard output.
package func say(_ line: String) { printError(line.sanitizedLines) }

private func printError(_ safeLine: String) {
  let bytes = Array((safeLine + "\n").utf8)
  _ = write(2, bytes, bytes.count)
}

/// Prints a step of a command that waits.
@Sendable package func showProgress(_ step: String) { say("\(step) …") }
