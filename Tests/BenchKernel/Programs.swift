// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Glibc

struct Outcome: CustomStringConvertible {
  let status: Int32
  /// Standard output, followed by standard error.
  let output: String

  var description: String { "exit code \(status): \(output)" }
}

/// Runs a shell command line to completion. In it, `token` is the program under test.
func shell(_ line: String) throws -> Outcome {
  let file = "/run/bench-kernel/output"
  let token = (try? BuiltProgram.path("approval-token")) ?? "approval-token"
  let status = system("token() { \(token) \"$@\"; }; { \(line)\n} >\(file) 2>&1 </dev/null")
  return Outcome(status: status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F), output: try contents(file))
}
