// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Logging
import RecordedLog
import ServerTestSupport
import Synchronization
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerStore

/// Counts the lines of a log.
private struct CountingHandler: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.info
  private let count: @Sendable () -> Void

  init(_ count: @escaping @Sendable () -> Void) { self.count = count }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) { count() }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CallbackStorageTests {
  /// As if the disk were full: neither the delivery nor the next attempt can be stored.
  private static func failures(in engine: Engine) -> [String] {
    switch engine {
    case .sqlite:
      ["UPDATE", "DELETE"].map {
        // Those in the file are disabled, temporary ones are not.
        "CREATE TEMP TRIGGER \($0)_fails BEFORE \($0) ON callback BEGIN SELECT RAISE(ABORT, 'full'); END"
      }
    case .postgreSQL:
      // A claim, which must succeed, changes no attempts.
      [
        """
        CREATE FUNCTION fail() RETURNS TRIGGER LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = 'disk_full'; END $$
        """,
        """
        CREATE TRIGGER fails BEFORE DELETE OR UPDATE OF attempts ON callback FOR EACH ROW EXECUTE FUNCTION fail()
        """,
      ]
    }
  }

  @Test(
    "A callback whose outcome cannot be stored is repeated after a pause", arguments: Engine.allCases, [true, false])
  func storageFailure(in engine: Engine, isAnswered: Bool) async throws {
    let temporary = try TemporaryStore(engine)
    let portal = try CallbackListener(answering: isAnswered)
    defer { portal.end() }
    try await temporary.store.write { database in
      let url = isAnswered ? "http://127.0.0.1:\(portal.port)/" : "http://127.0.0.2:1/"
      try database.insertCallback("t", url: url, of: "portal", dueAt: Timestamp(1))
      for statement in Self.failures(in: engine) { _ = try database.run(statement) }
    }
    let errors = Mutex(0)
    let log = Logger(label: "test") { _ in CountingHandler { errors.withLock { $0 += 1 } } }
    let worker = CallbackWorker(
      store: temporary.store, delivery: CallbackDelivery(allowing: ["127.0.0.0/8"]),
      clock: ServerClock { Timestamp(1000) },
      jitter: { 0 }, wakeUp: AsyncSignal(), log: log)
    let began = ContinuousClock.now
    let running = Task { try await worker.run() }
    try await eventually("an error in the log") { errors.withLock { $0 } > 0 }
    // Without the pause there were hundreds.
    try await Task.sleep(for: .seconds(1))
    running.cancel()
    _ = try? await running.finished()
    // A busy machine may take longer than the pause, 5 s.
    let pauses = Int((ContinuousClock.now - began) / .seconds(5))
    #expect((1...3 + 2 * pauses).contains(errors.withLock { $0 }))
    #expect(portal.count <= 1 + pauses)
  }

  @Test("The log line about a failed callback names the portal and the host") func failedCallback() async throws {
    let (temporary, log) = (try TemporaryStore(), RecordedLog())
    try await temporary.store.write {
      try $0.insertCallback("t", url: "http://127.0.0.2:1/", of: "shop", dueAt: Timestamp(1))
    }
    let worker = CallbackWorker(
      store: temporary.store, delivery: CallbackDelivery(allowing: ["127.0.0.0/8"]),
      clock: ServerClock { Timestamp(1000) }, jitter: { 0 }, wakeUp: AsyncSignal(), log: log.logger)
    let running = Task { try await worker.run() }
    try await eventually("a line in the log") { !log.all.isEmpty }
    running.cancel()
    _ = try? await running.finished()
    #expect(log.all.first?.hasPrefix("callback for t of shop to 127.0.0.2:1 failed (") == true, "\(log.all)")
  }

  /// Fails if the last wrong PIN does not delete a profile that has an open transaction with a row that a damaged
  /// database already has.
  @Test("A row in the place of a callback is no error", arguments: Engine.allCases)
  func rowInItsPlace(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    for url in ["http://127.0.0.1:1/", "http://127.0.0.1:2/"] {
      try await temporary.store.write { try $0.insertCallback("t", url: url, of: "portal", dueAt: Timestamp(1)) }
    }
    let jobs = try await temporary.store.read { try $0.callbacks(dueBy: Timestamp(1), without: [], limit: 2) }
    #expect(jobs.map(\.url) == ["http://127.0.0.1:1/"])
  }
}
