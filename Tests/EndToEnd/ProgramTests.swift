// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// `approval-token`, and `approval-tokend`, which it starts in its place.
  @Suite struct Programs {
    /// A copy of `approval-token` in a folder without the other program. Another process copies it: a program that
    /// this process has open for writing could be inherited by a child, and could not be started meanwhile.
    private func loneProgram(in folder: TemporaryDirectory) async throws -> String {
      let copy = folder.file("approval-token")
      try await run("cp", [Program.token, copy]).succeeded()
      return copy
    }

    @Test("The service is the daemon's program in the process of the command") func sameProcess() async throws {
      try await withScene { fixture in
        let process = try fixture.token.running.processID
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/exe")
        #expect(program.hasSuffix("/approval-tokend"))
      }
    }

    @Test("The network process is the program without keys, whichever program starts it")
    func networkProgram() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      for (program, words) in [(Program.token, ["network"]), (Program.service, ["network"]), (Program.network, [])] {
        let child = try ChildProcess(program, words + ["--relay", folder.file("relay.sock")])
        try await child.output.line(with: "ready")
        let file = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(child.processID)/exe")
        #expect(file.hasSuffix("/approval-token-network"))
        child.send(SIGTERM)
        #expect(try await child.exit() == .code(0), "\(program)")
      }
      for (words, code) in [([], 64), (["--relay"], 64), (["--relay", "/nowhere/relay.sock"], 69), (["--help"], 0)] {
        #expect(try await run(Program.network, words).exit == .code(Int32(code)), "\(words)")
      }
    }

    /// A user of a fresh system has no `~/.local`.
    @Test(
      "The service makes its default directory, and those above it, for its user only",
      .enabled("none is installed") {
        !FileManager.default.fileExists(atPath: "/usr/lib/systemd/system/approval-token.service")
      })
    func emptyHome() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let ownHome = ["-u", "STATE_DIRECTORY", "-u", "XDG_STATE_HOME", "HOME=\(folder.path)"]
      let child = try ChildProcess("env", ownHome + [Program.token, "serve", "--board", "simulated"])
      try await child.output.line(with: "ready")
      child.send(SIGTERM)
      #expect(try await child.exit() == .code(0))
      for name in [".local", ".local/state", ".local/state/approval-token"] {
        var status = stat()
        #expect(stat(folder.file(name), &status) == 0 && status.st_mode & 0o7777 == 0o700, "\(name)")
      }
    }

    @Test("A program that a test starts has no descriptor of the test's") func inheritsNothing() async throws {
      let inheritable = dup(STDIN_FILENO)
      defer { close(inheritable) }
      let outcome = try await run("ls", ["/proc/self/fd"])
      // The last one is the directory.
      #expect(outcome.output.split(separator: "\n") == ["0", "1", "2", "3"])
    }

    @Test(
      "Commands that need the daemon's program name it if it is missing",
      .enabled("none is installed") {
        !FileManager.default.fileExists(atPath: "/usr/libexec/approval-token/approval-tokend")
      },
      arguments: [["accounts"], ["serve"], ["board", "list"], ["enroll", "approvaltoken://x"], ["otp"], ["status"]])
    func missingProgram(words: [String]) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let outcome = try await run(
        try await loneProgram(in: folder), words + (words[0] == "board" ? [] : ["--state", folder.file("token")]))
      #expect(outcome.exit == .code(69))
      #expect(outcome.errors.contains("approval-tokend is missing; looked for \(folder.file("approval-tokend"))"))
    }

    /// Fails if each start of a service on a full disk leaves another file.
    @Test("A device secret that cannot be written leaves no file") func unwrittenSecret() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let state = folder.file("token")
      let limited = #"trap '' XFSZ; ulimit -f 0; exec "$0" "$@" >/dev/null 2>&1"#
      let outcome = try await run("/bin/sh", ["-c", limited, Program.token, "serve", "--state", state])
      #expect(outcome.exit == .code(69))
      let left = try FileManager.default.contentsOfDirectory(atPath: state)
      #expect(!left.contains { $0.hasPrefix("device-secret") }, "\(left)")
    }

    @Test("Commands for a running service need only their own program") func loneCommands() async throws {
      try await withScene { fixture in
        let (program, state) = (try await loneProgram(in: fixture.folder), ["--state", fixture.token.state])
        for words in [["status"], ["pending"], ["simulate", "led"]] {
          try await run(program, words + state).succeeded()
        }
        #expect(try await run(program, ["board", "legend"]).succeeded().output.contains("idle, connected"))
        let enrollment = try ChildProcess(
          program, ["enroll", "-", "--name", "mail"] + state,
          input: "otpauth://totp/E:a?secret=GEZDGNBVGY3TQOJQ&issuer=E\n")
        try await enrollment.outcome().succeeded()
        let code = try await run(program, ["otp", "mail"] + state).succeeded()
        #expect(code.output.utf8.count == 6)
        // The accounts were read again after the enrollment, and the token server is connected again.
        try await eventually("connected") { try await run(program, ["pending"] + state).exit == .code(0) }
        for words in ["board legend", "otp mail", "pending"] {
          let full = #"exec "$0" \#(words) "$@" >/dev/full"#
          let lost = try await run("/bin/sh", ["-c", full, program] + (words == "board legend" ? [] : state))
          #expect(lost.exit == .code(69) && lost.errors.contains("cannot write to standard output"), "\(lost)")
        }
        let refused = try ChildProcess(program, ["enroll", "-"] + state, input: "nonsense\n")
        #expect(try await refused.outcome().exit == .code(65))
      }
    }
  }
}
