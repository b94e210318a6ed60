// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Several servers, a portal with its callback endpoint, and the model of what they must have in the end.
final class OutageScene: Sendable {
  static let pinLimit = 4
  /// Another server takes over the callbacks of a killed one after a minute.
  private static let longestCallback = Duration.seconds(100)
  private static let configuration = """
    [application]
    pin = true
    max_pin_attempts = \(pinLimit)
    [limits]
    open_requests_per_device = 1000
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    messages = { en = "Log in?" }
    [[type]]
    name = "payment"
    method = "push_with_pin"
    request_expires_in = 600
    messages = { en = "Pay?" }
    """

  let server: TokenServerProcess
  let record = OutageRecord()
  private let group: ServerGroup
  private let servers: Int
  private let portal: (id: String, secret: String)
  private let sink: CallbackSink

  init(servers: Int) throws {
    self.servers = servers
    sink = try CallbackSink { [record] in record.received($0) }
    server = try TokenServerProcess(configuration: Self.configuration, servers: servers)
    group = try #require(server.group)
    portal = try server.addPortal()
  }

  deinit { sink.close() }

  /// Lets users work until a deadline, each on a thread of its own, while servers are killed and the database is
  /// restarted, or answers nothing for a time.
  /// - Returns: the number of outages.
  func run(_ users: [OutageUser], until deadline: ContinuousClock.Instant, seed: UInt64) async throws -> Int {
    let working = Observed(users.count + 1)
    for user in users {
      Thread.detachNewThread { [record] in
        while ContinuousClock.now < deadline { do { try user.act() } catch { record.failed(error) } }
        working.change { $0 -= 1 }
      }
    }
    let outages = Observed(0)
    Thread.detachNewThread { [self] in
      var random = SeededGenerator(seed: seed)
      do {
        while ContinuousClock.now < deadline {
          usleep(UInt32.random(in: 200_000...1_200_000, using: &random))
          try outage(outages.value, &random)
          outages.change { $0 += 1 }
        }
      } catch { record.violated("an outage did not end: \(error)") }
      working.change { $0 -= 1 }
    }
    let limit = deadline - .now + .seconds(120)
    guard await working.first(within: limit, { $0 == 0 ? true : nil }) != nil else {
      throw OutputTimeoutError(description: "the end of the users' work")
    }
    return outages.value
  }

  private func outage(_ number: Int, _ random: inout SeededGenerator) throws {
    switch number % 6 {
    case 2:
      try TestPostgreSQL.freeze()
      usleep(UInt32.random(in: 100_000...2_000_000, using: &random))
      try TestPostgreSQL.thaw()
    case 5: try TestPostgreSQL.restart()
    default: try group.restart(Int.random(in: 0..<servers, using: &random))
    }
  }

  /// Begins a transaction.
  /// - Returns: its id.
  func begin(_ type: String, of user: String, on device: DeviceClient) throws -> String {
    let callback = "\(sink.address)/\(UUID().uuidString)"
    record.asks(callback, for: device.clientID)
    let transaction = try server.begin(type, of: user, on: device, as: portal, callback: callback)
    record.begun(transaction, .init(device: device.clientID, callback: callback, needsPIN: type == "payment"))
    return transaction
  }

  /// Connects all devices at the same time. Each must get the hint of a new request, at whichever server it is begun.
  func expectHints(for users: [OutageUser]) async throws {
    let load = DrainLoad(server, portal)
    for user in users { load.follow(user.device) }
    try await eventually("\(users.count) streams") { load.streams == users.count ? () : nil }
    let transactions = try users.map { try begin("login", of: $0.name, on: $0.device) }
    try await eventually("hints on all streams") { load.seen.isSuperset(of: transactions) ? () : nil }
    await load.stop()
    #expect(load.failures.isEmpty)
  }

  /// Lets users answer while nothing is stopped: a callback of these requests that the portal has accepted must not be
  /// repeated. One that was delivered to a portal just before its server was killed is.
  func expectSingleCallbacks(for users: [OutageUser]) async throws {
    let transactions = try users.prefix(48).map { try $0.answer() }
    func unexpected() -> [String: Int] {
      let callbacks = record.callbacks
      return Dictionary(uniqueKeysWithValues: transactions.map { ($0, callbacks[$0] ?? 0) })
        .filter { $1 != (OutageRecord.refusesFirst($0) ? 2 : 1) }
    }
    _ = try? await eventually("all callbacks", within: Self.longestCallback) { unexpected().isEmpty ? () : nil }
    // Servers look for callbacks every five seconds.
    try await Task.sleep(for: .seconds(6))
    #expect(unexpected().isEmpty, "not the right number of callbacks")
  }

  /// Compares what each server and the callback endpoint have with the model.
  func judge() async throws {
    let entries = record.entries
    var ended: Set<String> = []
    for (transaction, entry) in entries {
      for _ in 0..<servers where try isEnded(transaction, entry) { ended.insert(transaction) }
    }
    _ = try? await eventually("all callbacks", within: Self.longestCallback) {
      ended.isSubset(of: record.callbacks.keys) ? () : nil
    }
    let callbacks = Set(record.callbacks.keys)
    #expect(ended.isSubset(of: callbacks), "no callback for \(ended.subtracting(callbacks))")
    #expect(callbacks.isSubset(of: ended), "a callback for \(callbacks.subtracting(ended))")
    #expect(record.violations.isEmpty)
  }

  /// Reads a result, from any server, and compares it with the model.
  private func isEnded(_ transaction: String, _ entry: OutageRecord.Entry) throws -> Bool {
    let result = try server.result(of: transaction, as: portal)
    let isAuthenticated = result.isAuthenticated
    let isEnded = isAuthenticated || result.reason != nil
    // Without a response the answer may have arrived.
    if isEnded { #expect(entry.ending != nil, "\(transaction)") } else { #expect(!entry.isConfirmed, "\(transaction)") }
    if isEnded { #expect(isAuthenticated == (entry.ending == .accepted), "\(transaction): \(result)") }
    if entry.needsPIN, entry.isConfirmed || entry.ending == nil {
      #expect(result.attempts == entry.pinAttempts, "\(transaction): \(entry)")
    }
    return isEnded
  }
}
