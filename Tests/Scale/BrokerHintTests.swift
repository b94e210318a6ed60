// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Three servers and a real mosquitto, at which a device gets its hints; it has no event stream.
@Suite(.timeLimit(.minutes(10)), .serialized) struct BrokerHintTests {
  @Test("Each request gives one hint at the broker, whichever server gets it, and so does a command")
  func hints() async throws {
    let fixture = try await BrokerFixture()
    let transactions = try fixture.begin(6)
    try await fixture.expectHints(6)
    #expect(fixture.starts(of: transactions).allSatisfy { $0 > 0 })
    // The device tells other servers, too, as it does when it starts.
    for _ in 0..<2 { try fixture.device.enrollForPush(over: .mqtt).expect(200) }
    _ = try fixture.begin(6)
    try await fixture.expectHints(12)
    try fixture.server.admin("device", "delete", fixture.device.clientID)
    try await fixture.expectHints(1, of: "device-revoked")
  }

  @Test("A killed server does not stop the hints of the others") func killedServer() async throws {
    let fixture = try await BrokerFixture()
    // The only one that has heard from the device.
    fixture.group.killServer(fixture.enrolledAt)
    _ = try fixture.begin(4)
    try await fixture.expectHints(4)
    try fixture.group.startServer(fixture.enrolledAt)
    // Until the balancer has noticed, it passes requests to the others.
    let transactions = try await eventually("a request at the server that was started again") {
      let transaction = try fixture.begin(1)
      return fixture.starts(of: transaction)[fixture.enrolledAt] > 0 ? fixture.begun : nil
    }
    try await fixture.expectHints(transactions)
  }

  @Test("The hints of requests that begin while the broker is away follow when it is back")
  func restartedBroker() async throws {
    let fixture = try await BrokerFixture()
    try await fixture.broker.stop()
    let transactions = try fixture.begin(3)
    try await fixture.broker.start()
    try await fixture.connected(2)
    // A server publishes equal hints that wait for the broker as one.
    let waiting = fixture.starts(of: transactions).count { $0 > 0 }
    try await fixture.expectHints(waiting)
    _ = try fixture.begin(3)
    try await fixture.expectHints(waiting + 3)
  }

  @Test("While the database is restarted again and again no request loses its hint") func restartedDatabase()
    async throws
  {
    let fixture = try await BrokerFixture()
    let restarts = 5
    for _ in 0..<restarts {
      async let restart: Void = Task.detached { try TestPostgreSQL.restart() }.value
      // Those without a response have no hint, as far as the servers know that they began.
      for _ in 0..<5 {
        _ = try? fixture.begin(1)
        try await Task.sleep(for: .milliseconds(60))
      }
      try await restart
    }
    _ = try await eventually("a request after the restarts") { try? fixture.begin(1) }
    let started = fixture.started
    print("\(started) requests began, \(fixture.begun) with a response")
    #expect(started >= fixture.begun)
    // Who stored a hint, and lost the connection before the response, stores it again.
    try await fixture.expectHints(started...started + restarts)
  }
}

/// A device whose hints come from a broker, and its portal.
private final class BrokerFixture {
  let broker: TestBroker
  let server: TokenServerProcess
  let group: ServerGroup
  let device: DeviceClient
  /// The only server that was told of the broker by the device.
  let enrolledAt: Int
  /// The number of requests.
  private(set) var begun = 0
  private let portal: (id: String, secret: String)
  private let reader: ChildProcess

  init() async throws {
    broker = try await TestBroker()
    server = try TokenServerProcess(
      configuration: """
        [mqtt]
        broker = "localhost:\(broker.port)"
        authorities = "\(broker.authority)"
        username = "\(TestBroker.user)"
        password = "\(TestBroker.password)"
        [[type]]
        name = "login"
        method = "push"
        request_expires_in = 600
        messages = { en = "Log in?" }
        delivery_required = true
        """, servers: 3)
    group = try #require(server.group)
    portal = try server.addPortal()
    device = try DeviceClient.enrolled(at: server, as: "alice")
    let before = group.logs
    let enrollment = try device.enrollForPush(over: .mqtt).expect(200).decoded(PushEnrollmentResponse.self)
    reader = try await broker.follow(try #require(enrollment.mailbox), as: "device")
    enrolledAt = try await eventually("a server logs the enrollment") { [group] in
      zip(before, group.logs).enumerated().first { _, logs in
        logs.1.dropFirst(logs.0.count).contains("enrolled for push")
      }?.offset
    }
    try await connected(1)
  }

  /// Waits until each server has connected to the broker this number of times.
  func connected(_ count: Int) async throws {
    try await eventually("the servers connect to the broker") { [group] in
      group.logs.allSatisfy { $0.components(separatedBy: "connected to the broker").count > count } ? () : nil
    }
  }

  /// Begins requests, one after the other, which the balancer passes to the servers in turn.
  func begin(_ count: Int) throws -> [String] {
    try (0..<count).map { _ in
      let transaction = try server.begin(on: device, as: portal)
      begun += 1
      return transaction
    }
  }

  /// How many of the transactions each server has begun since its start.
  func starts(of transactions: [String]) -> [Int] {
    group.logs.map { log in transactions.count { log.contains("transaction \($0): login") } }
  }

  /// How many transactions the servers have begun.
  var started: Int {
    group.logs.reduce(0) { count, log in
      count + log.split(separator: "\n").count { $0.contains("transaction ") && $0.contains(": login") }
    }
  }

  func expectHints(_ count: Int, of kind: String = "request") async throws {
    try await expectHints(count...count, of: kind)
  }

  /// Waits for hints, and as long again as another server could take to publish one, too.
  /// - Parameters:
  ///   - counts: of all so far.
  ///   - kind: of their event.
  func expectHints(_ counts: ClosedRange<Int>, of kind: String = "request") async throws {
    let hint = "{\"kind\":\"\(kind)\"}"
    let published = { [reader] in reader.output.lines.count { $0 == hint } }
    try await eventually("\(counts.lowerBound) hints") { published() >= counts.lowerBound ? () : nil }
    // Servers look for events every second.
    try await Task.sleep(for: .seconds(2))
    #expect(counts.contains(published()))
  }
}
