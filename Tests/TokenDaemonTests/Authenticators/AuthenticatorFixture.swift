// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import JSONValues
import MobileAuth
import Synchronization
import Testing

@testable import TokenDaemon

/// A running service with alice's account at a `MemoryServer`. Her keypad takes the code of "number"; "touch" is a
/// reader outside of the panel.
final class AuthenticatorFixture: Sendable {
  let server: MemoryServer
  let panel = ScriptedPanel()
  let touch = ScriptedDriver("touch")
  let service: ServiceFixture
  private let recorded: RecordedJSON
  private let running: [Task<Void, Never>]

  /// - Parameter registered: what alice has besides the PIN.
  init(registered: Set<String> = []) async throws {
    let (server, url) = MemoryServer.make()
    server.change { $0.registered = registered }
    let service = try ServiceFixture(
      kinds: Backends.kinds + [MemoryBackend.self], panel: panel,
      drivers: AuthenticatorDrivers([KeypadCodeDriver("number"), touch]), reportsSteps: true)
    (self.server, self.service) = (server, service)
    let lines = RecordedJSON()
    let handler = service.handler
    running = [
      Task { _ = try? await service.service.run() },
      Task { _ = try? await handler.answer(.events(follow: true)) { lines.add($0) } },
    ]
    recorded = lines
    // Only later events are followed.
    try await until("following") { names.contains("following") }
    _ = try await service.answer(.enroll(EnrollmentOptions(uri: url)), as: EnrollmentResponse.self)
    try await until("connected") { names.contains("connected") }
  }

  /// Ends the service. Called at the end of each test.
  func end() async {
    for task in running { task.cancel() }
    for task in running { _ = try? await task.finished() }
  }

  /// The events that name the account.
  var events: [JSONValue] { recorded.all.filter { $0["account"] != nil } }
  /// The names of all events.
  var names: [String] { recorded.all.compactMap { $0["event"]?.text } }

  /// The challenges so far, at least `count`: events arrive after the command that causes them.
  func challenges(_ count: Int) async throws -> [JSONValue] {
    try await until("\(count) challenges") { events.count { $0["event"]?.text == "challenge" } >= count }
    return events.filter { $0["event"]?.text == "challenge" }
  }

  /// Waits for an event.
  func event(after count: Int = 0, _ name: String) async throws -> JSONValue {
    try await until(name) { events.count { $0["event"]?.text == name } > count }
    return try #require(events.last { $0["event"]?.text == name })
  }

  func until(_ what: String, _ condition: () -> Bool) async throws {
    try await eventually(what, within: .seconds(60)) { condition() }
  }

  func list() async throws -> [AuthenticatorsResponse.Entry] {
    try await service.answer(.authenticators(account: "alice"), as: AuthenticatorsResponse.self).authenticators
  }

  /// Starts a command that needs the user.
  func begin(_ request: ControlRequest) -> Task<Void, any Error> {
    Task { [handler = service.handler] in try await handler.answer(request) { _ in } }
  }

  /// Waits for the next prompt, and types.
  func type(_ digits: String, at prompt: Int) async {
    await panel.until(challenges: prompt)
    panel.perform(.typed(digits))
  }

  func hold(at prompt: Int) async {
    await panel.until(challenges: prompt)
    panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
  }

  /// Waits until the reader is asked for the `count`th time, and lets it say something.
  func say(_ event: DriverEvent, at count: Int = 1) async throws {
    try await until("the reader is asked") { touch.calls.count >= count }
    touch.say(event)
  }

  /// Logs alice in with the PIN, as the first prompt.
  func logIn() async throws {
    let login = begin(.logIn(account: "alice", authenticator: "pin"))
    await type(MemoryServer.rightPIN, at: 1)
    try await login.finished()
  }

  /// The number of the error with which the command ends.
  func number(of request: ControlRequest) async -> Int? {
    do {
      try await service.handler.answer(request) { _ in }
      return nil
    } catch { return CommandError(explaining: error)?.number }
  }
}

/// Lines of `events` as the service sends them.
private final class RecordedJSON: Sendable {
  private let list = Mutex<[JSONValue]>([])

  var all: [JSONValue] { list.withLock { $0 } }

  func add(_ reply: some Encodable) {
    guard let value = JSONValue(parsing: JSONMessage.encode(reply)) else { return }
    list.withLock { $0.append(value) }
  }
}
