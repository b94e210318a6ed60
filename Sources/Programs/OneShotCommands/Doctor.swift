// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import Boards
import CLinux
import ControlProtocol
import Glibc
import MobileAuth
import ServerBackends
import Synchronization
import TokenDaemon
import Vault

extension Doctor: OneShotCommand {
  struct CheckResult: Encodable {
    enum Verdict: String, Encodable { case good, note, bad }

    var verdict: Verdict
    var subject: String
    var text: String
  }

  package func perform() async throws {
    try await reporting(json) {
      try state.requireVault()
      if forgetServerTimes { try state.openVault(creating: false).forgetKnownTimes() }
      let findings = try await self.findings()
      json.print(findings) { findings in
        findings.map { "\(Self.mark($0.verdict))  \($0.subject): \($0.text)" }.joined(separator: "\n")
      }
      if findings.contains(where: { $0.verdict == .bad }) { throw ExitCode(1) }
    }
  }

  func findings() async throws -> [CheckResult] {
    let environment = TokenEnvironment.system()
    let service = Result { try state.serviceStatus() }
    var findings: [CheckResult] = []
    do {
      let secret = try state.deviceSecret()
      findings.append(Self.check(secret.source))
      let vault = try state.openVault(creating: false, readOnly: true)
      findings.append(try Self.checkAudit(vault))
      findings.append(try Self.checkClock(vault, now: environment.wallClockMilliseconds / 1000))
      findings += try await checkServers(vault, beside: service, in: environment)
      findings.append(try Self.checkAccounts(vault))
    } catch let fault as StateStoreError {
      findings.append(CheckResult(verdict: .bad, subject: "vault", text: "\(fault)"))
    }
    findings.append(Self.checkSpace(in: state.directory))
    findings += Self.checkWriting(in: state.directory)
    findings.append(Self.check(service))
    findings.append(Self.checkMemory())
    findings.append(Self.checkSwap())
    findings += Self.checkRegisters()
    return findings
  }

  private static func mark(_ verdict: CheckResult.Verdict) -> String {
    switch verdict {
    case .good: "ok  "
    case .note: "note"
    case .bad: "BAD "
    }
  }

  private static func checkAudit(_ vault: Vault) throws -> CheckResult {
    switch try vault.verifyAudit() {
    case .intact(let lines, _): CheckResult(verdict: .good, subject: "audit chain", text: "intact, \(lines) lines")
    case .broken(let line, let why):
      CheckResult(verdict: .bad, subject: "audit chain", text: "broken at line \(line): \(why)")
    }
  }

  /// - Parameter now: Unix seconds by the board's clock.
  private static func checkClock(_ vault: Vault, now: Int64) throws -> CheckResult {
    guard now >= releaseTime else {
      return CheckResult(
        verdict: .note, subject: "clock",
        text:
          "\((releaseTime - now) / 86_400) days behind this version's release; certificates are checked at the last "
          + "time known to have passed, and time-based codes are not shown")
    }
    let ahead = try vault.servers().filter { try vault.latestKnownTime(of: $0.id) > now + 300 }.map(\.id.text)
    guard approval_linux_clock_is_synchronized() == 0 else {
      return ahead.isEmpty
        ? CheckResult(verdict: .good, subject: "clock", text: "synchronized")
        : CheckResult(
          verdict: .note, subject: "clock",
          text: "synchronized; the later times that these servers reported do not count: "
            + "\(ahead.joined(separator: ", ")). `approval-token doctor --forget-server-times` deletes them")
    }
    return ahead.isEmpty
      ? CheckResult(verdict: .note, subject: "clock", text: "not synchronized; time-based codes may be wrong")
      : CheckResult(
        verdict: .bad, subject: "clock",
        text: "not synchronized, and behind the time that these servers reported: \(ahead.joined(separator: ", ")). "
          + "Set the clock; if it is correct, `approval-token doctor --forget-server-times` deletes the reported times")
  }

  /// Storage must be writable: without it, no request can be answered.
  private static func checkSpace(in directory: String) -> CheckResult {
    var space = statvfs()
    guard statvfs(directory, &space) == 0 else {
      return CheckResult(
        verdict: .bad, subject: "storage", text: "\(directory): \(String(cString: strerror(errno)))")
    }
    return check(space, in: directory)
  }

  /// Writes a byte to a new file, waits until it is on the storage, and removes the file. A worn SD card can refuse
  /// writes while it is mounted for writing.
  /// - Returns: the fault, if there is one.
  static func checkWriting(in directory: String) -> [CheckResult] {
    let path = "\(directory)/doctor-\(getpid())"
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    var fault = descriptor < 0 ? errno : 0
    if descriptor >= 0 {
      if write(descriptor, [0], 1) != 1 || fsync(descriptor) != 0 { fault = errno }
      close(descriptor)
      if unlink(path) != 0, fault == 0 { fault = errno }
    }
    guard fault != 0 else { return [] }
    return [
      CheckResult(
        verdict: .bad, subject: "storage",
        text: "writing to \(directory) fails: \(String(cString: strerror(fault))). No request can be answered; if the "
          + "card is worn, replace it and enroll again")
    ]
  }

  static func check(_ space: statvfs, in directory: String) -> CheckResult {
    guard space.f_flag & UInt(ST_RDONLY) == 0 else {
      return CheckResult(
        verdict: .bad, subject: "storage", text: "\(directory) is mounted read-only: no request can be answered")
    }
    let (free, overflows) = UInt64(space.f_bavail).multipliedReportingOverflow(by: UInt64(space.f_frsize))
    let mebibytes = (overflows ? .max : free) >> 20
    let isEnough = mebibytes >= 32 && (space.f_files == 0 || space.f_favail >= 16)
    return CheckResult(
      verdict: isEnough ? .good : .bad, subject: "storage",
      text: "\(mebibytes) MiB free" + (isEnough ? "" : " and \(space.f_favail) files: free space in \(directory)"))
  }

  private func checkServers(
    _ vault: Vault, beside service: Result<ServiceStatus, any Error>, in environment: TokenEnvironment
  ) async throws -> [CheckResult] {
    var findings: [CheckResult] = []
    let network: NetworkAccess
    do { network = try networkAccess(beside: service) } catch {
      return [CheckResult(verdict: .bad, subject: "servers", text: "not checked: \(error)")]
    }
    let backends = Backends(
      vault, authorities: authorities, in: environment, makeHTTPTransport: network.makeHTTPTransport)
    for record in try vault.servers() {
      do {
        let troubles = Mutex<[String]>([])
        let backend = try backends.operations.backend(of: record)
        let accounts = try backends.accounts(at: record)
        // Only the servers of this capability know the device without an account.
        guard backend is any FleetRegistration || accounts.contains(where: { $0.stage == .active }) else {
          // One-time passwords have no server.
          guard try backends.client(for: record) != nil else { continue }
          findings.append(
            CheckResult(verdict: .note, subject: "server \(record.id)", text: "no active account there; not contacted"))
          continue
        }
        if let backend = backend as? any ReachCheck {
          try await backend.reach(record, accounts: accounts)
          findings.append(
            CheckResult(
              verdict: .good, subject: "server \(record.id)",
              text: "reachable, certificate trusted; it cannot report whether registrations are valid"))
          continue
        }
        let report: @Sendable (TokenEvent) -> Void = { event in troubles.withLock { $0.append("\(event)") } }
        guard let server = try backends.client(for: record, report: report) else { continue }
        _ = try await server.validate()
        _ = try await server.pendingRequests()
        findings += troubles.withLock { $0 }.map {
          CheckResult(verdict: .bad, subject: "server \(record.id)", text: $0)
        }
        findings.append(
          CheckResult(
            verdict: .good, subject: "server \(record.id)", text: "reachable, certificate trusted, registration valid"))
      } catch let fault as TokenServerError {
        findings.append(CheckResult(verdict: .bad, subject: "server \(record.id)", text: fault.explanation))
      } catch StateStoreError.notFound(.registration) {
        findings.append(
          CheckResult(
            verdict: .note, subject: "server \(record.id)",
            text: "no registration with it: enrollment unfinished; run the same `approval-token enroll` with the same "
              + "URI or typed code again"))
      }
    }
    return findings
  }

  static func checkAccounts(_ vault: Vault) throws -> CheckResult {
    let accounts = try vault.accountSummaries()
    if accounts.isEmpty {
      return CheckResult(verdict: .bad, subject: "accounts", text: "none: `approval-token enroll URI`")
    }
    let damaged = try vault.damagedAccounts()
    if !damaged.isEmpty {
      let text = damaged.map { "\(StateStoreError.corrupt(.account($0)))" }.joined(separator: "; ")
      return CheckResult(verdict: .bad, subject: "accounts", text: text)
    }
    let operations = Backends(vault).operations
    var unusable: [String] = []
    var verdict = CheckResult.Verdict.note
    for account in accounts {
      guard let remedy = operations.remedy(for: account, try? vault.account(account.id)) else { continue }
      let state = account.stage == .enrolling ? "is not enrolled completely" : "must be enrolled again"
      unusable.append("\(account.id) \(state): \(remedy.text)")
      if !remedy.mayBecomeActive { verdict = .bad }
    }
    return unusable.isEmpty
      ? CheckResult(verdict: .good, subject: "accounts", text: "\(accounts.count)")
      : CheckResult(verdict: verdict, subject: "accounts", text: unusable.joined(separator: "; "))
  }

  static func check(_ service: Result<ServiceStatus, any Error>) -> CheckResult {
    do {
      let status = try service.get()
      if let troubles = status.troubles, !troubles.isEmpty {
        return CheckResult(
          verdict: .bad, subject: "board",
          text: "\(troubles.joined(separator: "; ")). Stop the service, and run `approval-token board check "
            + "\(status.board ?? "BOARD")`")
      }
      let processes =
        status.isNetworkSeparate == true
        ? "the network in a process of its own" : "keys and network in one process, as `serve` runs them"
      return status.isSimulated == true
        ? CheckResult(
          verdict: .note, subject: "service",
          text: "running with a SIMULATED board: do not approve real requests; \(processes)")
        : CheckResult(verdict: .good, subject: "service", text: "running, board \(status.board ?? "?"), \(processes)")
    } catch { return CheckResult(verdict: .note, subject: "service", text: "\(error)") }
  }

  /// Each secret uses one locked page, of 4 or 16 KiB; 256 pages are enough for many accounts.
  private static func checkMemory() -> CheckResult {
    let limit = approval_linux_lockable_bytes()
    return limit >= 256 * UInt64(clamping: sysconf(Int32(_SC_PAGESIZE)))
      ? CheckResult(verdict: .good, subject: "locked memory", text: "secrets are kept out of swap")
      : CheckResult(
        verdict: .note, subject: "locked memory",
        text: "the limit is \(limit) bytes; secrets may be swapped. Set LimitMEMLOCK=4M in the systemd unit")
  }

  /// - Parameter directory: the directory of device nodes.
  static func checkRegisters(in directory: String = "/dev") -> [CheckResult] {
    RegisterNodes.open(in: directory).map {
      CheckResult(
        verdict: .bad, subject: "registers",
        text: "\($0) is accessible to users other than root, who can simulate a button press: \(RegisterNodes.remedy)")
    }
  }

  /// `MemorySwapMax=0` of the units keeps what is not in locked memory out of swap, such as the working memory of a
  /// PIN's key derivation. Without the kernel's memory controller, systemd does not apply it, and says nothing.
  /// - Parameters:
  ///   - swap: the swap space in bytes.
  ///   - controllers: the file in which the kernel lists the controllers of its control groups.
  static func checkSwap(
    _ swap: UInt64 = approval_linux_swap_bytes(), controllers: String = "/sys/fs/cgroup/cgroup.controllers"
  ) -> CheckResult {
    guard swap > 0 else { return CheckResult(verdict: .good, subject: "swap", text: "none") }
    guard let names = beginning(of: controllers, count: 256)?.split(whereSeparator: { $0 == " " || $0 == "\n" }) else {
      return CheckResult(
        verdict: .note, subject: "swap",
        text: "on; secrets in locked memory are not swapped. \(controllers) cannot be read: whether MemorySwapMax=0 of "
          + "the units has an effect is not known")
    }
    guard names.contains("memory") else {
      return CheckResult(
        verdict: .bad, subject: "swap",
        text: "on, and the kernel's memory controller is off, so MemorySwapMax=0 of the units has no effect: what is "
          + "not in locked memory, such as the working memory of a PIN's key derivation, may be swapped to the storage. "
          + "Switch swap off, or the controller on: on a Raspberry Pi, add cgroup_enable=memory to the line in "
          + "/boot/firmware/cmdline.txt, and restart")
    }
    return CheckResult(verdict: .note, subject: "swap", text: "on; secrets in locked memory are not swapped")
  }
}
