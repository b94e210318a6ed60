// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import ControlProtocol
import FrontPanel
import Glibc
import HTTP
import Logging
import MobileAuth
import OATHAdapter
import Secrets
import ServerBackends
import Synchronization
import Testing
import Vault

@testable import TokenDaemon

/// A service with its own vault, a simulated board and no network.
final class ServiceFixture: Sendable {
  let path: String
  let vault: Vault
  let context: BackendContext
  let board: RunningBoard
  let panel: RecordingPanel
  let service: TokenService
  let handler: ControlRequestHandler
  let events: AsyncStream<TokenEvent>.Continuation
  private let ending = Ending()
  private let environment: TokenEnvironment

  /// - Parameters:
  ///   - kinds: the kinds of servers that the service knows.
  ///   - panel: in place of the simulated board's; its prompts need no `Task` that runs it.
  ///   - drivers: of authenticators.
  ///   - reportsSteps: whether what the commands report reaches the service, as in the program.
  ///   - clock: of the service and the simulated board.
  ///   - http: answers all HTTP requests.
  init(
    reportHold: Duration? = nil, kinds: [any ServerBackend.Type] = Backends.kinds,
    panel: (any Panel)? = nil, drivers: AuthenticatorDrivers = AuthenticatorDrivers(), reportsSteps: Bool = false,
    clock: any TokenClock = SystemClock(),
    http: RecordingHTTPTransport = RecordingHTTPTransport { _ throws(HTTPTransportError) in
      throw .unreachable("no network in this test")
    }
  ) throws {
    environment = TokenEnvironment.test(clock)
    var template = Array("/tmp/service-tests-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    vault = try Vault.open(
      directory: path, deviceSecret: try DeviceSecret.load(stateDirectory: path, credentialsDirectory: nil))
    var profile = try BoardCatalog.profile("simulated")
    if let reportHold { profile.timing.reportHold = reportHold }
    // On a busy machine a press, and typing, may take much longer than they should.
    profile.timing.stuck = .seconds(60)
    profile.keypad?.entry.idle = .seconds(120)
    board = try RunningBoard(profile, clock: environment.clock)
    self.panel = RecordingPanel(panel ?? board.panel)
    let (stream, events) = AsyncStream.makeStream(of: TokenEvent.self)
    self.events = events
    let environment = reportsSteps ? environment.reporting { events.yield($0) } : environment
    var context = BackendContext(vault, Configuration(), board, in: environment) { _ in http }
    context.drivers = drivers
    self.context = context
    let backends = Backends(vault, context, kinds: kinds)
    service = TokenService(
      panel: self.panel, backends: backends,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, events: stream
    ) {}
    let accounts = AccountService(
      service: service, backends: backends, veryLongHold: board.profile.timing.reportHold
    ) { [ending] in
      ending.hasCome.withLock { $0 = true }
    }
    handler = ControlRequestHandler(service: service, backends: backends, board: board, accounts: accounts)
  }

  deinit {
    for name in [
      "vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal", "device-secret", "server.json",
      FactoryReset.markerName,
    ] {
      unlink("\(path)/\(name)")
    }
    rmdir(path)
  }

  private final class Ending: Sendable {
    let hasCome = Mutex(false)
  }

  /// Whether the service was asked to end.
  var hasEnded: Bool { ending.hasCome.withLock { $0 } }

  /// Whether the handler waits for a change.
  var handlerWaits: Bool { if case .waiting = service.handlerState { true } else { false } }

  /// Enrolls an account that needs no server.
  func enroll(_ name: String) async throws {
    _ = try await OATHBackend(BackendContext(vault, authorities: nil, in: environment)).enroll(
      EnrollmentRequest("otpauth://totp/Example:\(name)?secret=GEZDGNBVGY3TQOJQ&issuer=Example"))
  }

  /// Where a test may keep a server. Removed with the fixture.
  var serverFile: String { "\(path)/server.json" }

  func answer<Answer: Sendable>(_ request: ControlRequest, as type: Answer.Type) async throws -> Answer {
    let found = Mutex<Answer?>(nil)
    try await handler.answer(request) { reply in found.withLock { $0 = reply as? Answer } }
    return try #require(found.withLock { $0 })
  }

  /// Waits until the LED shows the indication.
  func until(_ indication: Indication, file: String = #fileID, line: Int = #line) async throws {
    try await until("\(indication) on the LED", file: file, line: line) { await board.panel.showing == indication }
  }

  /// Waits until the condition holds, with a limit for busy machines.
  /// - Parameter what: named in the error.
  func until(
    _ what: String, file: String = #fileID, line: Int = #line, _ condition: () async throws -> Bool
  ) async throws {
    try await eventually(what, within: .seconds(180), file: file, line: line) {
      if try await condition() { return true }
      try await Task.sleep(for: .milliseconds(5))
      return false
    }
  }

  /// Waits for a request that a press answers now.
  func shownRequest(file: String = #fileID, line: Int = #line) async throws -> PendingSummary {
    try await eventually("a request that a press answers", within: .seconds(180), file: file, line: line) {
      try await answer(.pending, as: PendingResponse.self).requests.first { $0.pressCounts }
    }
  }
}

/// A panel that records what it has shown: some indications take less time than a busy machine needs to look at them.
final class RecordingPanel: Panel {
  private let panel: any Panel
  private let list = Mutex<[Indication]>([])

  init(_ panel: any Panel) { self.panel = panel }

  /// All indications, in order. Those that are played to their end have been played.
  var shown: [Indication] { list.withLock { $0 } }

  var canType: Bool { panel.canType }

  func show(_ indication: Indication) async {
    await panel.show(indication)
    list.withLock { $0.append(indication) }
  }

  func note(openRequests count: Int) async { await panel.note(openRequests: count) }
  func events(for prompt: Prompt) -> AsyncStream<PanelEvent> { panel.events(for: prompt) }
}
