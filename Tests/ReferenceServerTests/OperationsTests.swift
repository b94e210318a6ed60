// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import Logging
import ReferenceProtocol
import ServerTestSupport
import Testing

@testable import ReferenceServer

/// Health checks, metrics, draining and the JSON log, against the running server.
@Suite("Operations", .timeLimit(.minutes(5)), .mayBlock) struct OperationsTests {
  private static func configuration(drainSeconds: Int = 0) -> String {
    PINFixture.configuration() + "\n[operations]\nport = 0\ndrain_seconds = \(drainSeconds)"
  }

  /// The address for health checks and metrics.
  static func address(of server: TokenServerProcess) throws -> String {
    let line = try #require(
      server.log.split(separator: "\n").first { $0.contains("health checks and metrics on port") })
    return "http://127.0.0.1:\(line.split(separator: " ").last ?? "")"
  }

  private static func value(of series: String, in text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix(series + " ") }.map { String($0.dropFirst(series.count + 1)) }
  }

  /// The metrics once they are as wanted, or those after a minute: what the database does not give within two seconds,
  /// as on a busy machine, is in a later response.
  private static func readMetrics(
    of server: TokenServerProcess, at address: String, once areAsWanted: (String) -> Bool
  ) throws -> Curl.Reply {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      let reply = try server.curl(address + "/metrics").expect(200)
      guard !areAsWanted(reply.text), ContinuousClock.now < deadline else { return reply }
      usleep(20_000)
    }
  }

  private static let deliveries = "token_server_transaction_delivery_seconds_count"

  private struct ListedTransaction: Decodable {
    let transactionID: String
    let createdAtMs: Int64
    let deliveredAtMs: Int64?

    enum CodingKeys: String, CodingKey {
      case transactionID = "transaction_id"
      case createdAtMs = "created_at_ms"
      case deliveredAtMs = "delivered_at_ms"
    }
  }

  private static func listed(at server: TokenServerProcess) throws -> [ListedTransaction] {
    let list = ["transaction", "list", "--directory", server.directory, "--json"]
    return try JSONDecoder().decode(
      [ListedTransaction].self, from: Data(run(BuiltProgram.path("token-server"), list).bytes))
  }

  @Test("Metrics count requests, PINs and transactions, and contain no word of a client") func metrics() throws {
    let ready = try ReadyServer(configuration: Self.configuration(), withPIN: true)
    let (server, device, fixture) = (ready.server, ready.device, PINFixture(ready))
    let address = try Self.address(of: server)
    let fresh = try server.curl(address + "/metrics").expect(200).text
    // `increase()` needs the value before the first event.
    for series in [
      #"token_server_pin_attempts_total{result="limit_reached"}"#,
      #"token_server_transactions_ended_total{state="expired"}"#, "token_server_transaction_answer_seconds_count",
      #"token_server_http_requests_total{method="POST",route="/oauth/token",status="503"}"#,
      #"token_server_http_requests_total{method="POST",route="/device/v1/requests/{tid}/answers",status="500"}"#,
    ] {
      #expect(Self.value(of: series, in: fresh) == "0", "\(series) in \(fresh)")
    }
    let transaction = try fixture.ask(device)
    let open = "token_server_transactions_open"
    let waiting = try Self.readMetrics(of: server, at: address) { Self.value(of: open, in: $0) == "1" }
    #expect(waiting.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
    #expect(Self.value(of: open, in: waiting.text) == "1")
    let fetched = try device.fetch(transaction)
    let report = #"{"ids":[],"transactions":["\#(transaction)","\#(transaction)","x","\#(UUID())"]}"#
    // Repeated, and counted once.
    for _ in 1...3 {
      try server.curl(device.arguments("POST", "/device/v1/events/acks"), input: Array(report.utf8)).expect(204)
    }
    let entries = try Self.listed(at: server)
    #expect(entries.count == 1 && entries.allSatisfy { $0.deliveredAtMs ?? 0 >= $0.createdAtMs })
    let list = ["transaction", "list", "--directory", server.directory]
    #expect(try run(BuiltProgram.path("token-server"), list).text.contains("open, delivered after "))
    let wrong = try device.send(device.answerWithPIN(fetched, .wrong), to: transaction)
    let nonce = try wrong.expect(422).decoded(Problem.self).nonce
    try device.send(device.answerWithPIN(fetched, attempt: 2, nonce: nonce), to: transaction).expect(200)
    _ = try server.curl("--request", "GET", server.url + "/no-such-place/alice")

    let (bytes, queue) = ("token_server_database_bytes", "token_server_database_waiting")
    // The server's own tasks use the database, too.
    let text = try Self.readMetrics(of: server, at: address) { text in
      [open, queue].allSatisfy { Self.value(of: $0, in: text) == "0" } && Self.value(of: bytes, in: text) != nil
        && Self.value(of: Self.deliveries, in: text) == "1"
    }.text
    let expected = [
      #"token_server_pin_attempts_total{result="right"}"#: "1",
      #"token_server_pin_attempts_total{result="wrong"}"#: "1",
      #"token_server_transactions_ended_total{state="authenticated"}"#: "1",
      "token_server_transaction_answer_seconds_count": "1",
      Self.deliveries: "1",
      open: "0", queue: "0",
      #"token_server_http_requests_total{method="GET",route="NotFound",status="404"}"#: "1",
      #"token_server_http_requests_total{method="POST",route="/device/v1/requests/{tid}/answers",status="422"}"#:
        "1",
    ]
    for (series, value) in expected {
      #expect(Self.value(of: series, in: text) == value, "\(series) in \(text)")
    }
    #expect(!text.contains("alice") && !text.contains(transaction) && !text.contains("\(device.clientID)"))
    #expect(try #require(Int(Self.value(of: bytes, in: text) ?? "")) > 0)
    // Each series has one line, after the type of its metric.
    let series = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.split(separator: " ").first }
    #expect(Set(series).count == series.count)
  }

  @Test("A request counts as delivered, once, when its device is sent the list, and not another device's") func listed()
    throws
  {
    let ready = try ReadyServer(configuration: Self.configuration(), withPIN: true)
    let (server, fixture, address) = (ready.server, PINFixture(ready), try Self.address(of: ready.server))
    let other = try DeviceClient.enrolledWithPIN(at: server, as: "bob")
    let transactions = try [fixture.ask(ready.device), fixture.ask(ready.device), fixture.ask(other, user: "bob")]
    func delivered(count: Int) throws -> Set<String> {
      let text = try Self.readMetrics(of: server, at: address) { Self.value(of: Self.deliveries, in: $0) == "\(count)" }
        .text
      #expect(Self.value(of: Self.deliveries, in: text) == "\(count)")
      return try Set(Self.listed(at: server).filter { $0.deliveredAtMs != nil }.map(\.transactionID))
    }
    for _ in 1...2 { _ = try other.call("GET", "/device/v1/pending").expect(200) }
    #expect(try delivered(count: 1) == [transactions[2]])
    for _ in 1...2 { _ = try ready.device.call("GET", "/device/v1/pending").expect(200) }
    #expect(try delivered(count: 3) == Set(transactions))
  }

  @Test("Metrics have the connections to PostgreSQL, those that were lost, and how long transactions waited")
  func connections() async throws {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    let server = try TokenServerProcess(configuration: Self.configuration(), directory: directory, servers: 1)
    let address = try Self.address(of: server)
    func value(of series: String) throws -> Int? {
      Self.value(of: series, in: try server.curl(address + "/metrics").expect(200).text).flatMap { Int($0) }
    }
    let (used, idle) = (
      #"token_server_database_connections{state="used"}"#, #"token_server_database_connections{state="idle"}"#
    )
    let text = try server.curl(address + "/metrics").expect(200).text
    let states = [used, idle].map { Self.value(of: $0, in: text).flatMap { Int($0) } ?? -100 }
    #expect((1...8).contains(states[0] + states[1]), "\(states)")
    #expect(try value(of: "token_server_database_wait_seconds_count") ?? 0 > 0)
    let failures = "token_server_database_connection_failures_total"
    #expect(try value(of: failures) == 0)
    try TestPostgreSQL.query(
      """
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()
      """, in: #require(TestDeployment.database(of: directory)))
    try await eventually("a lost connection is counted") { try value(of: failures) ?? 0 > 0 ? () : nil }
    try await eventually("it is ready") { try server.curl(address + "/readyz").status == 200 }
  }

  @Test("Metrics count the changes that PostgreSQL canceled, and each is repeated") func conflicts() throws {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    let server = try TokenServerProcess(configuration: Self.configuration(), directory: directory, servers: 1)
    let address = try Self.address(of: server)
    let conflicts = "token_server_database_conflicts_total"
    func count() throws -> Int? {
      Self.value(of: conflicts, in: try server.curl(address + "/metrics").expect(200).text).flatMap { Int($0) }
    }
    let earlier = try #require(try count())
    // A sequence does not return to its earlier value when the transaction is canceled.
    try TestPostgreSQL.query(
      """
      CREATE SEQUENCE tries;
      CREATE FUNCTION cancel() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('tries') <= 2 THEN RAISE EXCEPTION 'canceled' USING ERRCODE = 'serialization_failure'; END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER cancel BEFORE INSERT ON device FOR EACH ROW EXECUTE FUNCTION cancel()
      """, in: #require(TestDeployment.database(of: directory)))
    _ = try DeviceClient.enrolledWithPIN(at: server, as: "alice")
    #expect(try #require(try count()) >= earlier + 2)
  }

  /// As in YugabyteDB; in CockroachDB there is no such function.
  @Test("Without the size of the database there are the other metrics") func unknownSize() throws {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    try TestPostgreSQL.query(
      """
      CREATE FUNCTION public.pg_database_size(name) RETURNS BIGINT LANGUAGE sql AS 'SELECT CAST(NULL AS BIGINT)';
      DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
      END $$
      """, in: #require(TestDeployment.database(of: directory)))
    let server = try TokenServerProcess(configuration: Self.configuration(), directory: directory, servers: 1)
    let callbacks = "token_server_callbacks_waiting"
    let text = try Self.readMetrics(of: server, at: Self.address(of: server)) {
      Self.value(of: callbacks, in: $0) != nil
    }.text
    #expect(Self.value(of: "token_server_transactions_open", in: text) == "0")
    #expect(Self.value(of: callbacks, in: text) == "0")
    #expect(Self.value(of: "token_server_database_bytes", in: text) == nil)
  }

  @Test("Metrics count the attempts with authenticators") func authenticators() throws {
    let fixture = try AuthenticatorFixture("\n[operations]\nport = 0")
    let token = try fixture.registerBadge()
    let address = try Self.address(of: fixture.server)
    func attempt(status: Int) throws {
      try fixture.scripts.answer(status: status)
      _ = try fixture.device.logIn(with: "badge", token, data: AuthenticatorFixture.badge)
    }
    func expect(_ result: String, _ count: Int) throws {
      let text = try fixture.server.curl(address + "/metrics").expect(200).text
      let series = #"token_server_authenticator_attempts_total{kind="custom",result="\#(result)"}"#
      #expect(Self.value(of: series, in: text) == "\(count)", "\(series)")
    }
    try expect("wrong", 0)
    try attempt(status: 2000)
    try attempt(status: 4000)
    try attempt(status: 5000)
    for result in ["right", "wrong", "deregistered"] { try expect(result, 1) }
  }

  @Test("A server that drains is healthy but not ready, and answers until a second signal") func drains() async throws {
    let server = try TokenServerProcess(configuration: Self.configuration(drainSeconds: 240))
    let address = try Self.address(of: server)
    #expect(try server.curl(address + "/healthz").expect(200).text == "ok\n")
    #expect(try server.curl(address + "/readyz").expect(200).text == "ready\n")
    for path in ["/elsewhere", "//metrics", "/metrics/"] { try server.curl(address + path).expect(404) }
    kill(server.processIdentifier, SIGTERM)
    try await eventually("it is not ready") { try server.curl(address + "/readyz").status != 200 ? () : nil }
    #expect(try server.curl(address + "/readyz").expect(503).text == "draining\n")
    #expect(try server.curl(address + "/healthz").expect(200).text == "ok\n")
    #expect(try server.curl(server.url + "/.well-known/oauth-authorization-server").status == 200)
    // The second signal.
    #expect(server.stop() == 0)
  }

  @Test("A server that drains ends after its time") func endsAfterDraining() throws {
    let server = try TokenServerProcess(configuration: Self.configuration(drainSeconds: 1))
    let start = ContinuousClock.now
    #expect(server.stop() == 0)
    #expect(ContinuousClock.now - start >= .seconds(1))
  }

  @Test("Without [operations] there is no other address") func off() throws {
    let server = try TokenServerProcess(configuration: PINFixture.configuration())
    #expect(!server.log.contains("health checks"))
    #expect(server.stop() == 0)
  }

  @Test("With --log-format json each line of a server's log is an object") func jsonLog() throws {
    let directory = try ServerDirectories.new(onPostgreSQL: false)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let log = directory + "/log"
    let server = try RunningProgram(
      BuiltProgram.path("token-server"),
      ["serve", "--directory", directory, "--port", "0", "--log-level", "debug", "--log-format", "json"], errors: log)
    #expect(server.nextLine()?.hasPrefix("listening on ") == true)
    server.send(SIGTERM)
    #expect(server.waitForEnd() == 0)
    let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    #expect(!lines.isEmpty)
    for line in lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: any Sendable]
      #expect(["time", "level", "logger", "message"].allSatisfy { object?[$0] is String }, "\(line)")
    }
  }

  @Test("The log has a line for each request if access_log is true") func accessLog() throws {
    for isOn in [true, false] {
      let server = try TokenServerProcess(configuration: "access_log = \(isOn)\n")
      #expect(try server.curl(server.url + "/nowhere").status == 404)
      #expect(server.stop() == 0)
      #expect(server.log.contains("GET /nowhere 404 ") == isOn, "\(server.log)")
    }
  }

  @Test("A line of the JSON log is an object") func log() throws {
    var log = JSONLog(label: "token-server")
    log[metadataKey: "device"] = "C1"
    let event = LogEvent(
      level: .warning, message: "a \"line\"\nbreak", metadata: ["n": "1"], source: "s", file: "f", function: "g",
      line: 1)
    let line = log.line(event, at: Date(timeIntervalSince1970: 1_795_000_000.25))
    #expect(line.last == 0x0A && line.dropLast().allSatisfy { $0 >= 0x20 })
    let object = try JSONSerialization.jsonObject(with: Data(line)) as? [String: any Sendable]
    #expect(object?["time"] as? String == "2026-11-18T11:06:40.250Z")
    #expect(object?["level"] as? String == "warning" && object?["logger"] as? String == "token-server")
    #expect(object?["message"] as? String == "a \"line\"\nbreak")
    #expect(object?["metadata"] as? [String: String] == ["device": "C1", "n": "1"])
  }
}
