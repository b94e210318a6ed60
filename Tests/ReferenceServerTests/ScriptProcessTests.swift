// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Logging
import ReferenceProtocol
import ServerTestSupport
import Testing

@testable import ReferenceServer
@testable import TokenServerCore

/// Scripts as processes: limits, descriptors, folder and environment.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ScriptProcessTests {
  private func run(_ script: String, input: String = "", timeLimit: Duration = .seconds(60)) -> ScriptProcess.Ending {
    ScriptProcess(
      command: ["/bin/sh", "-c", script], folder: "/tmp", timeLimit: timeLimit, outputLimit: 1000
    ).run(Array(input.utf8))
  }

  private func output(_ script: String, input: String = "") -> String? {
    guard case .output(let bytes) = run(script, input: input) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("Input and output") func inputAndOutput() {
    #expect(output("cat", input: "x\u{0}y") == "x\u{0}y")
    #expect(output("cat >/dev/null", input: String(repeating: "x", count: 100_000)) == "")
    #expect(output("exit 0", input: "not read") == "")
  }

  @Test("The working folder and the environment are the script's own") func folderAndEnvironment() {
    #expect(output("pwd") == "/tmp\n")
    #expect(
      output("env | cut -d= -f1 | grep -v -e '^PWD$' -e '^_$' -e '^SHLVL$' -e '^OLDPWD$' | sort") == "LANG\nPATH\n")
  }

  @Test("No descriptor of the server is inherited") func descriptors() throws {
    let open = try FileHandle(forReadingFrom: URL(filePath: "/dev/null"))
    defer { try? open.close() }
    #expect(output("ls /proc/self/fd | tr '\\n' ' '") == "0 1 2 3 ")
  }

  @Test(
    "What is no success is a failure",
    arguments: ["exit 1", "kill -9 $$", "head -c 1001 /dev/zero", "yes", "echo x; exit 3"])
  func failures(script: String) { #expect(run(script) == .failed) }

  @Test("A program that cannot be started has not run") func notStarted() {
    let missing = ScriptProcess(command: ["/no/such"], folder: "/tmp", timeLimit: .seconds(30), outputLimit: 10)
    #expect(missing.run([]) == .notStarted)
    let folder = ScriptProcess(command: ["/bin/true"], folder: "/no/such", timeLimit: .seconds(30), outputLimit: 10)
    #expect(folder.run([]) == .notStarted)
  }

  @Test("At the time limit the script and its children are killed") func timeLimit() async throws {
    let marker = NSTemporaryDirectory() + "script-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: marker) }
    var child: pid_t?
    // On a busy machine the script may need longer than its time to start the child.
    for limit in [0.3, 3, 30] where child == nil {
      #expect(run("sleep 600 & echo $! >\(marker); wait", timeLimit: .seconds(limit)) == .failed)
      child = (try? String(contentsOfFile: marker, encoding: .utf8)).flatMap { pid_t($0.dropLast()) }
    }
    let started = try #require(child)
    try await eventually("the child is gone") { Self.isGone(started) ? () : nil }
    // A child that keeps the output open does not outlive the script's time.
    #expect(run("sleep 600 & exit 0", timeLimit: .milliseconds(300)) == .failed)
  }

  @Test("When the server ends, its scripts and their children are killed, and none is started")
  func end() async throws {
    let marker = NSTemporaryDirectory() + "script-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: marker) }
    let groups = ScriptGroups()
    let script = "sleep 600 & echo $! >\(marker).new; mv \(marker).new \(marker); wait"
    let process = ScriptProcess(
      command: ["/bin/sh", "-c", script], folder: "/tmp",
      timeLimit: .seconds(240), outputLimit: 1000, groups: groups)
    let running = Task.detached(executorPreference: BlockingThreads.shared) { process.run([]) }
    let child: pid_t = try await eventually("the child runs") {
      (try? String(contentsOfFile: marker, encoding: .utf8)).flatMap { pid_t($0.dropLast()) }
    }
    groups.end()
    #expect(await running.value == .notStarted)
    try await eventually("the child is gone") { Self.isGone(child) ? () : nil }
    let later = ScriptProcess(
      command: ["/bin/true"], folder: "/tmp", timeLimit: .seconds(60), outputLimit: 10, groups: groups)
    #expect(later.run([]) == .notStarted)
  }

  /// A killed process stays a zombie until its parent reaps it.
  static func isGone(_ process: pid_t) -> Bool {
    let state = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return state.map { $0.contains(") Z ") } ?? true
  }

  @Test("Another user runs the script through setpriv") func user() {
    #expect(ScriptProcesses.command("/x", user: nil) == ["/x"])
    #expect(
      ScriptProcesses.command("/x", user: "root")
        == ["/usr/bin/setpriv", "--reuid=root", "--regid=0", "--init-groups", "--no-new-privs", "/x"])
  }

  @Test("A script of another user is not started by a server that does not run as root") func otherUser() async throws {
    let folder = NSTemporaryDirectory() + "scripts-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let scripts = try TestScripts(in: folder)
    let processes = ScriptProcesses(
      directory: ServerDirectory(path: folder), log: DeviceLog(Logger(label: "test")), isRoot: false)
    var authenticator = ServerConfiguration.Authenticator(id: "a", name: "A", kind: .custom)
    (authenticator.scripts, authenticator.user) = (folder, "root")
    let name = AuthenticatorName(profile: ProfileName(clientID: ClientID("C"), id: ProfileID("P")), id: "a")
    let call = ScriptCall(
      .authenticate, for: .login, name, of: UserID("u"), issuer: "https://s", data: [], nonce: "n")
    let result = await processes.run(call, of: authenticator)
    #expect(result?.outcome == .notRun && result?.status == 3001 && !processes.canRun(authenticator))
    #expect(try scripts.calls().isEmpty)
  }

  @Test(
    "Too many scripts at the same time are not started, of one device or of all",
    arguments: [(1, ScriptProcesses.mostForOneDevice + 1), (ScriptProcesses.most + 4, 1)])
  func tooMany(devices: Int, each: Int) async throws {
    let folder = NSTemporaryDirectory() + "scripts-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let file = folder + "/authenticate"
    // Each waits for a line, without processes of its own; there are lines when one was not started.
    try #require(mkfifo(folder + "/lines", 0o600) == 0)
    let lines = open(folder + "/lines", O_RDWR | O_CLOEXEC)
    defer { close(lines) }
    try writeExecutable("#!/bin/sh\nread -r line <'\(folder)/lines'\necho '{\"status\":2000}'\n", to: file)
    let scripts = ScriptProcesses(directory: ServerDirectory(path: folder), log: DeviceLog(Logger(label: "test")))
    var authenticator = ServerConfiguration.Authenticator(id: "a", name: "A", kind: .custom)
    (authenticator.scripts, authenticator.timeLimitSeconds) = (folder, 240)
    let calls = (0..<(devices * each)).map { number in
      let device = ClientID("C\(number % devices)")
      return ScriptCall(
        .authenticate, for: .login,
        AuthenticatorName(profile: ProfileName(clientID: device, id: ProfileID("P")), id: "a"), of: UserID("u"),
        issuer: "https://s", data: [], nonce: "n")
    }
    let results = await withTaskGroup(of: ScriptResult?.self) { [authenticator] group in
      for call in calls { group.addTask { await scripts.run(call, of: authenticator) } }
      var results: [ScriptResult?] = []
      for await result in group {
        if result == nil { _ = write(lines, String(repeating: "\n", count: calls.count), calls.count) }
        results.append(result)
      }
      return results
    }
    #expect(results.count { $0 == nil } >= 1 && results.contains { $0 != nil })
    #expect(results.compactMap { $0 }.allSatisfy { $0 == ScriptResult(status: 2000) }, "\(results)")
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ScriptResultTests {
  private func parsed(_ text: String) -> ScriptResult { ScriptResult(parsing: Array(text.utf8)) }

  @Test("A result") func result() {
    #expect(
      parsed(#"{"status":2000,"data":"x","registration_data":"y","more":1}"#)
        == ScriptResult(status: 2000, data: "x", registrationData: "y"))
    #expect(parsed(#"{"status":5999}"#) == ScriptResult(status: 5999))
  }

  @Test(
    "Output that is not a result has status 3004",
    arguments: [
      "", "{", "[]", "{}", #"{"status":"2000"}"#, #"{"status":1999}"#, #"{"status":6000}"#, #"{"status":-1}"#,
      #"{"status":99999999999999999999}"#, #"{"status":2000.5}"#, #"{"status":2000,"data":1}"#,
      #"{"status":2000,"status":2000}"#, #"{"status":2000} x"#,
      #"{"status":2000,"data":"\#(String(repeating: "x", count: 4097))"}"#,
      #"{"status":2000,"registration_data":"\#(String(repeating: "x", count: 16_385))"}"#,
    ])
  func noResult(text: String) {
    #expect(parsed(text).info == CustomInfo(status: 3004, data: "") && parsed(text).outcome == .noResult)
  }

  @Test("Each range of the status table has one meaning") func ranges() {
    for (status, outcome) in [
      (2000, ScriptResult.Class.accepted), (2999, .accepted), (3000, .notRun), (3999, .notRun), (4000, .mayRetry),
      (4999, .mayRetry), (5000, .final), (5999, .final),
    ] {
      #expect(ScriptResult(status: status).outcome == outcome, "\(status)")
    }
    #expect(ScriptResult.failed.outcome == .noResult && ScriptResult.failed.status == 3001)
  }
}
