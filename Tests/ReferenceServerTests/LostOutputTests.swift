// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ServerTestSupport
import Testing

/// Administrators' commands whose output or messages cannot be written.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct LostOutputTests {
  /// Runs a command with redirections as in a shell.
  private func serverProgram(_ command: String, _ directory: String, _ redirection: String) throws -> ProgramOutput {
    let line = "exec \"$0\" \(command) --directory \"$1\" \(redirection)"
    return try run("/bin/sh", ["-c", line, BuiltProgram.path("token-server"), directory])
  }

  @Test("A result that cannot be written is an error", arguments: [">/dev/full", ">&-"])
  func lostResult(redirection: String) throws {
    let directory = try ServerDirectories.new()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    for command in [
      "api-client add portal", "api-client renew portal --json", "api-client list", "activation-code alice",
      "fleet-token add boards", "user add bob", "device list", "transaction list --json", "type list",
      "user list", "activation-code list", "fleet-token list",
    ] {
      let lost = try serverProgram(command, directory, redirection)
      #expect(lost.status == 69, "\(command)")
      #expect(lost.errors.contains("Error: cannot write to standard output"), "\(command): \(lost.errors)")
      let hasAdvice = lost.errors.contains("run \"token-server api-client renew portal\" for another")
      #expect(hasAdvice == (command.hasPrefix("api-client") && command != "api-client list"), "\(lost.errors)")
    }
  }

  /// Not by SIGPIPE, which would end the command without the advice.
  @Test("A result for a pipe whose reader has ended is an error") func endedReader() throws {
    let directory = try ServerDirectories.new()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let line = "{ sleep 1; \"$0\" api-client add portal --directory \"$1\"; echo $? >&2; } | true"
    let lost = try run("/bin/sh", ["-c", line, BuiltProgram.path("token-server"), directory])
    #expect(lost.errors.contains("for another") && lost.errors.hasSuffix("69\n"), "\(lost.errors)")
  }

  @Test("A warning that cannot be written does not end a command", arguments: ["2>/dev/full", "2>&-"])
  func lostWarning(redirection: String) throws {
    let directory = try ServerDirectories.new()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let warned = try serverProgram("activation-code alice", directory, "")
    #expect(warned.status == 0 && warned.errors.contains("warning:"), "\(warned.errors)")
    let silent = try serverProgram("activation-code alice", directory, redirection)
    #expect(silent.status == 0 && silent.text.hasPrefix("code: "), "\(silent.text)")
  }
}
