// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// Error handling of the commands: a reason, an exit code of sysexits(3), and no change of state.
  @Suite struct Commands {
    @Test("A used code is refused") func aUsedCodeIsRefused() async throws {
      try await withScene { fixture in
        let uri = try await fixture.server.activation(for: "alice")
        let other = TestToken(state: fixture.folder.file("other"), board: "simulated")
        let enrolled = try await other.enroll(uri)
        try enrolled.succeeded()
        // librnp tests a wrong session key first, and would report it.
        #expect(!enrolled.errors.contains("checksum"))
        try await expectFailure(.code(77), saying: "used", changingNothingIn: fixture) {
          try await fixture.token.enroll(uri)
        }
      }
    }

    /// A report has registers and memory, which may contain secrets.
    @Test("A crash of the service leaves no report of the runtime") func noCrashReport() async throws {
      try await withScene { fixture in
        let running = try fixture.token.running
        running.send(SIGILL)
        #expect(try await running.exit() == .signal(SIGILL))
        let log = try await running.errors.whole()
        for word in ["Registers", "Backtrace", "Crash:", "Images", "rip", "Thread 0"] {
          #expect(!log.contains(word), "\(log)")
        }
      }
    }

    @Test("A server that is down is unavailable") func aServerThatIsDownIsUnavailable() async throws {
      try await withScene { fixture in
        let uri = try await fixture.server.activation(for: "alice")
        try await fixture.server.stop()
        try await expectFailure(.code(69), saying: "onnect", changingNothingIn: fixture) {
          try await fixture.token.enroll(uri)
        }
      }
    }

    @Test("A server with another pin is not spoken to") func aServerWithAnotherPinIsNotSpokenTo() async throws {
      try await withScene { fixture in
        let uri = try await fixture.server.activation(for: "alice")
        let pin = "pin_sha256=" + String(repeating: "A", count: 43) + "%3D"
        let wrong = uri.replacing(/pin_sha256=.*/, with: pin)
        try await expectFailure(.code(77), saying: "--pin", changingNothingIn: fixture) {
          try await fixture.token.enroll(wrong)
        }
        let fresh = TestToken(state: fixture.folder.file("fresh"), board: "simulated")
        #expect(try await fresh.enroll(wrong).exit == .code(77))
        #expect(try await fresh.accounts().isEmpty)
        // The failed attempt at the other server did not use up the code.
        try await fresh.enroll(uri).succeeded()
      }
    }

    @Test(
      "A malformed URI is bad data",
      arguments: [
        "", "hello", "https://127.0.0.1/", "approvaltoken://activate", "approvaltoken://other?server=https%3A%2F%2Fx",
        "approvaltoken://activate?server=https%3A%2F%2F127.0.0.1%3A1",
        "approvaltoken://activate?server=http%3A%2F%2F127.0.0.1%3A1&code=0000000000000",
        "approvaltoken://activate?server=https%3A%2F%2F127.0.0.1%3A1&code=1234567890123",
        "approvaltoken://activate?server=https%3A%2F%2F127.0.0.1%3A1&code=0000000000000&pin_sha256=short",
      ])
    func aMalformedURIIsBadData(uri: String) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let token = TestToken(state: folder.file("token"), board: "simulated")
      let outcome = try await token.enroll(uri)
      #expect(outcome.exit == .code(65))
      #expect(outcome.errors.hasPrefix("{\"code\":65,\"error\":"))
      #expect(try await token.accounts().isEmpty && !token.hasState)
    }

    /// Fails if another command makes it a new vault, or if an enrollment that was killed while it made one, which
    /// leaves the same, cannot be repeated.
    @Test("An empty vault is damaged, and only an enrollment or a start makes a new one", arguments: [true, false])
    func emptyVault(starts: Bool) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let state = folder.file("token")
      let token = TestToken(state: state, board: "simulated")
      try FileManager.default.createDirectory(
        atPath: state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      for (name, mode) in [("vault.sqlite3", 0o600), ("device-secret", 0o400)] {
        let contents = Data(count: name == "device-secret" ? 32 : 0)
        #expect(
          FileManager.default.createFile(
            atPath: "\(state)/\(name)", contents: contents, attributes: [.posixPermissions: mode]))
      }
      let uri = "otpauth://totp/a:b?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
      try Data(uri.utf8).write(to: URL(filePath: "\(state)/uri"))
      for (words, code) in [(["accounts"], 65), (["log", "--verify"], 65), (["doctor"], 1)] as [([String], Int32)] {
        let outcome = try await run(Program.token, words + ["--state", state])
        #expect(outcome.exit == .code(code), "\(outcome)")
        #expect((outcome.output + outcome.errors).contains("the vault is damaged: \(state)/vault.sqlite3 is empty"))
        #expect(try Data(contentsOf: URL(filePath: "\(state)/vault.sqlite3")).isEmpty)
      }
      if starts {
        try await token.start()
        try await token.stop()
      } else {
        #expect(try await run(Program.token, ["enroll", "--file", "\(state)/uri", "--state", state]).exit == .code(0))
      }
      #expect(try await token.accounts().count == (starts ? 0 : 1))
    }

    @Test(
      "Wrong usage is said and changes nothing",
      arguments: [
        ["enroll"], ["enroll", "otpauth://totp/a?secret=GEZDGNBV"], ["enroll", "mfauth://totp/a"], ["nonsense"],
        ["simulate", "hold", "61"], ["simulate", "hold", "soon"], ["log", "--lines", "0"],
        ["serve", "--nonsense"], ["enroll", "approvaltoken://x", "--name", "two words"],
      ])
    func wrongUsageIsSaidAndChangesNothing(words: [String]) async throws {
      let outcome = try await run(Program.token, words)
      #expect(outcome.exit == .code(64))
      #expect(outcome.errors.contains("Usage:"))
    }

    @Test("A command for a service that does not run says so") func aCommandForAServiceThatDoesNotRunSaysSo()
      async throws
    {
      try await withScene { fixture in
        let second = try ChildProcess(Program.token, ["serve", "--state", fixture.token.state])
        #expect(try await second.outcome().exit == .code(75), "another one serves this state already")
        try await fixture.token.stop()
        for words in [["pending"], ["simulate", "led"], ["simulate", "double"]] {
          let outcome = try await run(Program.token, words + ["--state", fixture.token.state])
          #expect(outcome.exit == .code(69))
          #expect(outcome.errors.contains("not running"))
        }
        let status = try await fixture.token.status()
        #expect(!status.running)
        #expect(status.accounts == 1)
      }
    }

    /// Other tests use the control socket for the same purpose.
    @Test(
      "Commands operate and read the simulated panel",
      arguments: [
        (["keys", "1", "3", "5", "8", "9", "enter"], "approved"), (["hold", "1"], "approved"),
        (["double"], "denied (declined)"), (["not-me"], "denied (not-me)"),
      ])
    func simulatedPanel(gesture: [String], ending: String) async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        @Sendable func succeed(_ words: [String]) async throws -> Outcome {
          try await run(Program.token, words + ["--state", token.state]).succeeded()
        }
        try await token.shows("idle, connected")
        #expect(try await succeed(["simulate", "press"]).output == "ignored: nothing is shown")
        #expect(try await succeed(["pending"]).output == "nothing is pending")
        let transaction = try await fixture.ask(type: gesture[0] == "keys" ? "payment" : "login")
        try await token.log.line(with: "opened request \(transaction)")
        let pending = try await succeed(["pending", "--json"]).decoded([TestToken.Pending].self)
        #expect(pending.map(\.transaction) == [transaction])
        let wanted = gesture[0] == "keys" ? "PIN wanted" : "confirmation wanted"
        try await token.shows(wanted)
        #expect(try await succeed(["simulate", "led"]).output.contains(wanted))
        try await token.answer(transaction) { _ = try await succeed(["simulate"] + gesture) }
        #expect(try await fixture.settled(transaction).hasPrefix(ending))
      }
    }

    @Test("The LED can be followed until the service ends") func theLEDCanBeFollowed() async throws {
      try await withScene { fixture in
        let follower = try ChildProcess(
          Program.token, ["simulate", "led", "--follow", "--json", "--state", fixture.token.state])
        try await follower.output.line(with: "idle, connected")
        let transaction = try await fixture.ask()
        try await follower.output.line(with: "confirmation wanted", "blue")
        try await fixture.token.answer(transaction, with: .hold)
        try await follower.output.line(with: "approved, and the token server confirmed it", "green")
        try await fixture.token.stop()
        #expect(try await follower.outcome().exit == .code(69))
      }
    }

    @Test("The panel can be watched, with the signed texts, until the service ends") func panelCanBeWatched()
      async throws
    {
      try await withScene { fixture in
        let watcher = try ChildProcess(Program.token, ["watch", "--json", "--state", fixture.token.state])
        try await watcher.output.line(with: #""event":"idle""#)
        let transaction = try await fixture.ask()
        try await watcher.output.line(with: #""event":"shown""#, #""signature":"openpgp""#, transaction)
        try await fixture.token.answer(transaction, with: .hold)
        try await watcher.output.line(with: #""event":"ended""#, #""reason":"answered""#, transaction)
        try await fixture.token.stop()
        #expect(try await watcher.outcome().exit == .code(69))
      }
    }

    /// Fails if the socket's thread ends with the first error of accept(2): the service ended with it.
    @Test("A lack of descriptors does not end the service") func lackOfDescriptors() async throws {
      try await withScene { fixture in
        let process = try fixture.token.running
        @Sendable func open() throws -> Int {
          try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.processID)/fd").count
        }
        let most = try open() + 8
        try await run("prlimit", ["--pid", "\(process.processID)", "--nofile=\(most):"]).succeeded()
        var watchers = fixture.token.watches(16)
        _ = try await eventually("all descriptors are in use") { try open() >= most ? true : nil }
        try await Task.sleep(for: .milliseconds(300))
        watchers = []
        #expect(watchers.isEmpty && process.isRunning)
        try await run("prlimit", ["--pid", "\(process.processID)", "--nofile=1024:"]).succeeded()
        let transaction = try await fixture.ask()
        try await fixture.token.answer(transaction, with: .hold)
        #expect(try await fixture.settled(transaction).hasPrefix("approved"))
      }
    }

    /// A state directory on storage that the kernel has remounted read-only, and on full storage.
    @Test(
      "Doctor and serve report a read-only or full state directory",
      .enabled("mount namespaces are allowed") {
        (try? await run("unshare", ["--mount", "true"]))?.exit == .code(0)
      })
    func storageThatCannotBeWritten() async throws {
      try await withScene { fixture in
        try await fixture.token.stop()
        let state = fixture.token.state
        func inNamespace(_ script: String, _ words: [String]) async throws -> Outcome {
          try await run(
            "unshare",
            ["--mount", "--propagation", "private", "sh", "-ec", script + "; shift; exec \"$@\"", "sh", state]
              + [Program.token] + words + ["--state", state])
        }
        let readOnly = "mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\""
        let ill = try await inNamespace(readOnly, ["doctor"])
        #expect(ill.exit == .code(1))
        #expect(ill.output.contains("BAD   storage: \(state) is mounted read-only: no request can be answered"))
        let refused = try await inNamespace(readOnly, ["serve"])
        #expect(refused.exit == .code(69))
        #expect(refused.errors.contains("Read-only file system"), "\(refused.errors)")
        #expect(!refused.errors.contains("another"))
        let full =
          "cp -a \"$1\" \"$1.copy\"; mount -t tmpfs -o size=4m,mode=700 none \"$1\"; cp -a \"$1.copy\"/. \"$1\""
        let cramped = try await inNamespace(full, ["doctor"])
        #expect(cramped.exit == .code(1))
        #expect(cramped.output.contains("BAD   storage: "), "\(cramped.output)\(cramped.errors)")
        #expect(cramped.output.contains("free space in \(state)"))
        try await fixture.token.startConnected()
      }
    }

    @Test("Doctor tells a well token from one without its server") func doctorTellsAWellTokenFromOneWithoutItsServer()
      async throws
    {
      struct Finding: Decodable {
        let verdict: String
        let subject: String
        let text: String
      }
      try await withScene { fixture in
        let well = try await fixture.token.command("doctor", "--json")
        #expect(well.exit == .code(0))
        let findings: [Finding] = try well.decoded()
        #expect(!findings.contains { $0.verdict == "bad" })
        #expect(findings.contains { $0.verdict == "good" && $0.subject == "audit chain" })
        let processes =
          TestToken.areSplit ? "the network in a process of its own" : "keys and network in one process"
        #expect(findings.contains { $0.subject == "service" && $0.text.contains(processes) }, "\(findings)")
        try await fixture.server.stop()
        let ill = try await fixture.token.command("doctor", "--json")
        #expect(ill.exit == .code(1))
        let bad = try ill.decoded([Finding].self).filter { $0.verdict == "bad" }
        #expect(bad.count == 1)
        #expect(bad.first?.subject.hasPrefix("server ") == true)
      }
    }
  }
}

private func expectFailure(
  _ exit: ChildProcess.Exit, saying reason: String, changingNothingIn fixture: EndToEndFixture,
  _ command: () async throws -> Outcome
) async throws {
  let accounts = try await fixture.token.accounts()
  let status = try await fixture.token.status()
  let outcome = try await command()
  #expect(outcome.exit == exit)
  #expect(outcome.errors.contains(reason), "\(outcome.errors)")
  #expect(try await fixture.token.accounts() == accounts)
  #expect(try await fixture.token.status().accounts == status.accounts)
  #expect(try await fixture.token.audit().count { $0.kind == "enrolled" } == 1)
}
