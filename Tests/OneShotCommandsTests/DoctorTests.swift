// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ApprovalTokenCommands
import ArgumentParser
import ControlProtocol
import Glibc
import MobileAuth
import SQLite
import Secrets
import Testing
import UnixSockets
import Vault

@testable import OneShotCommands

@Suite(.timeLimit(.minutes(5))) struct DoctorTests {
  private func withFolder(_ body: (String) async throws -> Void) async throws {
    var template = Array("/tmp/doctor-tests-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
      let names = [
        "vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal", "device-secret", "gpiomem0", "cred", "controllers",
        "",
      ]
      for name in names { remove("\(folder)/\(name)") }
    }
    try await body(folder)
  }

  @Test("A node that maps all lines' registers is reported as a fault, with what to do") func registers() async throws {
    try await withFolder { folder in
      let node = "\(folder)/gpiomem0"
      #expect(Doctor.checkRegisters(in: folder).isEmpty)
      try #require(mknod(node, S_IFREG | 0o666, 0) == 0 && chmod(node, 0o666) == 0)
      let findings = Doctor.checkRegisters(in: folder)
      #expect(findings.map(\.verdict) == [.bad] && findings.map(\.subject) == ["registers"])
      #expect(findings[0].text.hasPrefix("\(node) is accessible") && findings[0].text.contains("udev/"))
    }
  }

  @Test(
    "A systemd credential is good only if a TPM encrypts it",
    arguments: [
      ("k6iUCUh0RJCQyvL8k8q1Uw", Doctor.CheckResult.Verdict.good, "encrypted with a TPM"),
      ("DHzAexF2RZGcSwvqCLwg/g", .good, "encrypted with a TPM"),
      ("Whxqht+dQJax1aZeCGLxmg", .note, "encrypted without a TPM"), ("", .note, "encrypted without a TPM"),
      (nil, .note, "cannot be read: No such file or directory"),
    ] as [(String?, Doctor.CheckResult.Verdict, String)])
  func credential(encrypted: String?, verdict: Doctor.CheckResult.Verdict, text: String) async throws {
    try await withFolder { folder in
      if let encrypted {
        let file = try #require(fopen("\(folder)/cred", "w"))
        fputs(encrypted, file)
        fclose(file)
      }
      let source = DeviceSecret.Source.systemdCredential(path: "/run/credentials/device-secret")
      let result = Doctor.check(source, encrypted: "\(folder)/cred")
      #expect(result.verdict == verdict && result.text.contains(text))
    }
  }

  @Test(
    "Swap is a fault where the kernel has no memory controller, with what to do",
    arguments: [
      (0, nil, .good, "none"), (0, "cpuset cpu io pids\n", .good, "none"),
      (4096, "cpuset cpu io memory hugetlb pids\n", .note, "in locked memory are not swapped"),
      (4096, "cpuset cpu io hugetlb pids\n", .bad, "cgroup_enable=memory"),
      (4096, "memory.high\n", .bad, "Switch swap off"), (4096, "", .bad, "MemorySwapMax=0 of the units has no effect"),
      (4096, "cpuset\n", .bad, "/boot/firmware/cmdline.txt"), (4096, nil, .note, "is not known"),
    ] as [(UInt64, String?, Doctor.CheckResult.Verdict, String)])
  func swapSpace(bytes: UInt64, controllers: String?, verdict: Doctor.CheckResult.Verdict, text: String) async throws {
    try await withFolder { folder in
      if let controllers {
        let file = try #require(fopen("\(folder)/controllers", "w"))
        fputs(controllers, file)
        fclose(file)
      }
      let result = Doctor.checkSwap(bytes, controllers: "\(folder)/controllers")
      #expect(result.verdict == verdict && result.subject == "swap" && result.text.contains(text))
    }
  }

  /// Fails if a service that hangs, or has no free connection, makes a process with keys use the network.
  @Test("Beside a service that does not answer, no server is reached") func silentService() async throws {
    try await withFolder { folder in
      let state = try #require(try Doctor.parseAsRoot(["--state", folder]) as? Doctor).state
      _ = try networkAccess(beside: Result { try state.serviceStatus() })
      let socket = try UnixSocket.listening(at: state.controlSocket)
      defer { unlink(state.controlSocket) }
      let error = #expect(throws: CommandError.self) {
        _ = try networkAccess(beside: Result { try state.serviceStatus(within: 1) })
      }
      #expect(error?.description.hasPrefix("the service does not answer at \(state.controlSocket)") == true)
      withExtendedLifetime(socket) {}
    }
  }

  /// Without a name, the command opens no device.
  @Test("For a fault of the board, the check of that board is named") func board() {
    var status = ServiceStatus(running: true, accounts: 1, mustEnroll: 0)
    status.board = "raspberry-pi-4"
    status.troubles = ["the keypad is unplugged"]
    let result = Doctor.check(Result<ServiceStatus, any Error>.success(status))
    #expect(result.verdict == .bad)
    #expect(result.text.hasSuffix("unplugged. Stop the service, and run `approval-token board check raspberry-pi-4`"))
  }

  @Test("Storage that refuses writes is reported, and the attempt leaves no file") func writing() async throws {
    try await withFolder { folder in
      #expect(Doctor.checkWriting(in: folder).isEmpty)
      // The folder is removed with known files only: the attempt has left none.
      let findings = Doctor.checkWriting(in: "/proc/self")
      #expect(findings.map(\.verdict) == [.bad])
      #expect(findings.first?.text.hasPrefix("writing to /proc/self fails") == true)
    }
    let isGone = try await { () async throws -> Bool in
      var path = ""
      try await withFolder { folder in
        path = folder
        _ = Doctor.checkWriting(in: folder)
      }
      return access(path, F_OK) != 0
    }()
    #expect(isGone)
  }

  @Test("The command deletes the times of servers with --forget-server-times, and only then") func forgetsTimes()
    async throws
  {
    try await withFolder { folder in
      let command = try #require(try Doctor.parseAsRoot(["--state", folder]) as? Doctor)
      let vault = try command.state.openVault(creating: true)
      let server = TokenServerID("oath")
      try vault.put(TokenServerRecord(id: server, kind: "oath", url: "oath:", secrets: SecretBytes(copying: [])))
      try vault.note(time: 4_000_000_000, of: server)
      // No account is enrolled, which is a fault.
      await #expect(throws: ExitCode(1)) { try await command.perform() }
      #expect(try vault.latestKnownTime(of: server) == 4_000_000_000)
      let forgetting = try #require(try Doctor.parseAsRoot(["--state", folder, "--forget-server-times"]) as? Doctor)
      await #expect(throws: ExitCode(1)) { try await forgetting.perform() }
      #expect(try vault.latestKnownTime(of: server) == 0)
    }
  }

  @Test("A line of the audit chain that cannot be read is printed with its number, among the others")
  func unreadableAuditLine() async throws {
    try await withFolder { folder in
      let vault = try #require(try Doctor.parseAsRoot(["--state", folder]) as? Doctor).state.openVault(creating: true)
      for _ in 1...3 { try vault.record(AuditEntry(.loggedIn, wallClockMilliseconds: 0)) }
      try Connection(path: "\(folder)/vault.sqlite3").execute("UPDATE audit SET kind = 'other' WHERE sequence = 2")
      let lines = try vault.auditRows(newest: 3).map { Log.text(of: $0.line, $0.sequence) }
      #expect(
        lines == [
          "1  1970-01-01T00:00:00Z  logged-in  -  -", "2  cannot be read", "3  1970-01-01T00:00:00Z  logged-in  -  -",
        ])
      for options in [[], ["--json"]] {
        let command = try #require(try Log.parseAsRoot(["--state", folder] + options) as? Log)
        await #expect(throws: ExitCode(65)) { try await command.perform() }
      }
      let newest = try #require(try Log.parseAsRoot(["--state", folder, "-n", "1"]) as? Log)
      try await newest.perform()
    }
  }
}
