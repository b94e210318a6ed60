// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import FrontPanel
import Glibc
import HTTP
import Logging
import Synchronization

@testable import ControlProtocol
@testable import JSONValues
@testable import MobileAuth
@testable import OATHAdapter
@testable import PingAMAdapter
@testable import RegistrationURIs
@testable import ServerBackends
@testable import TokenDaemon
@testable import Vault

/// Handles requests of the control socket: the first line is the request, the rest is the response of the enrolled
/// server to each request. The board is simulated and gets no input, so that a request that waits for the panel ends
/// when the caller disconnects.
func answerCall(_ bytes: [UInt8]) {
  var input = Input(bytes, choices: statuses.count)
  let status = statuses[input.choice]
  guard let line = input.lines(atMost: 1).first,
    let request = try? ControlRequest(line: Array(line.utf8))
  else { return }
  let handler = orTrap { try makeHandler(answering: HTTPResponse(status: status, body: input.bytes)) }
  wait {
    let work = Task {
      do { try await handler.answer(request) { answer in _ = JSONMessage.encode(answer) } } catch {
        guard !(error is CancellationError) else { return }
        require(CommandError(explaining: error) != nil, "the caller can be notified of \(error)")
      }
    }
    let hangUp = Task {
      // More than any request needs that does not wait for the user.
      for _ in 0..<500 where !Task.isCancelled { await Task.yield() }
      work.cancel()
    }
    await work.value
    hangUp.cancel()
  }
  forgetEnrollments()
}

private let statuses = [200, 201, 204, 400, 401, 403, 404, 500]

/// A vault with one TOTP account and one HOTP account, in a directory that is removed when the process exits.
private let vault: Vault = orTrap {
  let vault = try ScratchVault.make()
  for (name, kind) in [("time", "totp"), ("count", "hotp")] {
    _ = try OATHBackend(BackendContext(vault, authorities: nil, in: environment)).store(
      try RegistrationURI("otpauth://\(kind)/Example:\(name)?secret=GEZDGNBVGY3TQOJQ&issuer=Example"), name: name,
      under: nil, progress: { _ in })
  }
  return vault
}

private let environment = TokenEnvironment.test(HastyClock()).reporting { event in _ = "\(event)" }
private let profile = orTrap { try BoardCatalog.profile("simulated") }

private func makeHandler(answering response: HTTPResponse) throws -> ControlRequestHandler {
  let board = try RunningBoard(profile, clock: environment.clock)
  var configuration = Configuration()
  // A short key is generated quickly; it signs nothing.
  configuration.push.backends.keyBits = 1024
  let context = BackendContext(vault, configuration, board, in: environment) { _ in
    RecordingHTTPTransport { _ in response }
  }
  let backends = Backends(vault, context)
  let service = TokenService(
    panel: board.panel, backends: backends,
    logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() },
    events: AsyncStream { $0.finish() }
  ) {}
  let accounts = AccountService(
    service: service, backends: backends, veryLongHold: board.profile.timing.reportHold)
  return ControlRequestHandler(service: service, backends: backends, board: board, accounts: accounts)
}

/// Restores the initial state of the vault for the next input.
private func forgetEnrollments() {
  orTrap {
    for account in try vault.accounts() where !["time", "count"].contains(account.id.text) {
      require(isAccountName(account.id.text), "an account has a name that can be typed")
      try vault.wipe(account: account.id, AuditEntry(.wiped, wallClockMilliseconds: 0))
    }
    for server in try vault.servers() where server.id.text != "oath" {
      try vault.wipe(server: server.id, AuditEntry(.wiped, wallClockMilliseconds: 0))
    }
  }
}

/// A clock on which each sleep returns immediately and advances the time by its length.
private final class HastyClock: TokenClock {
  private let passed = Mutex(MonotonicInstant(uptime: .zero))

  var now: MonotonicInstant { passed.withLock { $0 } }
  var wallClockMilliseconds: Int64 { 1_795_253_339_000 + now.uptime.components.seconds * 1000 }

  func sleep(until moment: MonotonicInstant) async throws {
    try Task.checkCancellation()
    passed.withLock { $0 = max($0, moment) }
    await Task.yield()
  }
}

enum ScratchVault {
  /// The directories that are removed when the process exits.
  private static let directories = Mutex<[String]>([])

  static func make() throws -> Vault {
    let directory = try makeDirectory()
    return try Vault.open(
      directory: directory,
      deviceSecret: try DeviceSecret.load(stateDirectory: directory, credentialsDirectory: nil), auditCapacity: 10)
  }

  /// Creates a directory, in memory if `/dev/shm` is writable.
  static func makeDirectory() throws -> String {
    let base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
    var template = Array("\(base)/fuzz-XXXXXX".utf8CString)
    require(mkdtemp(&template) != nil, "a directory can be made")
    let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    directories.withLock { directories in
      if directories.isEmpty { atexit { ScratchVault.removeAll() } }
      directories.append(path)
    }
    return path
  }

  private static func removeAll() {
    for directory in directories.withLock({ $0 }) {
      for name in [
        "vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal", "device-secret", "approval-token.device-secret",
        "text",
      ] {
        unlink("\(directory)/\(name)")
      }
      rmdir(directory)
    }
  }
}
