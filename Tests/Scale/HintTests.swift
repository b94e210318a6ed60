// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Testing

/// A device is connected to one of several servers, and the portal to any.
@Suite(.timeLimit(.minutes(10)), .serialized) struct HintTests {
  private static let configuration = """
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    messages = { en = "Log in?" }
    delivery_required = true
    supersede = true
    """

  /// Begins requests one after the other, until each has reached the device, and answers them.
  /// - Returns: how long each took to the device.
  private func delays(_ server: TokenServerProcess, of device: DeviceClient) async throws -> [Duration] {
    let portal = try server.addPortal()
    let stream = try device.openEventStream()
    defer { stream.send(SIGKILL) }
    var delays: [Duration] = []
    for _ in 0..<9 {
      // Until the other servers know that the device is connected, a request fails at once.
      let (transaction, started) = try await eventually("the device is connected") {
        () -> (String, ContinuousClock.Instant)? in
        let started = ContinuousClock.now
        let transaction = try server.begin(on: device, as: portal)
        let result = try server.result(of: transaction, as: portal)
        return result.reason == "failed_to_send" ? nil : (transaction, started)
      }
      while let line = stream.nextLine(), !line.contains(transaction) {}
      delays.append(started.duration(to: .now))
      #expect(try device.pending().map(\.transactionID) == [transaction])
      try device.send(device.answer(transaction, .accept), to: transaction).expect(200)
    }
    return delays.sorted()
  }

  @Test("A connected device learns of each request at once, and counts as connected at all servers") func hints()
    async throws
  {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 3)
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let delays = try await delays(server, of: device)
    let median = delays[delays.count / 2]
    print("from the portal's request to the device: \(median) (median of \(delays.count), with two calls of curl)")
    #expect(median < .seconds(1))
    // Deregistered by a command: the stream at whichever server gets the event and ends.
    let other = try device.openEventStream()
    try server.admin("device", "delete", device.clientID)
    var told = false
    while let line = other.nextLine() { told = told || line.contains("device-revoked") }
    #expect(told)
  }

  /// As in CockroachDB, which has no such function.
  @Test("Without notifications of the database a connected device learns of each request within seconds")
  func withoutNotifications() async throws {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    let database = try #require(TestDeployment.database(of: directory))
    // A sequence keeps its value when the call fails.
    try TestPostgreSQL.query(
      """
      CREATE SEQUENCE refused;
      CREATE FUNCTION public.pg_notify(TEXT, TEXT) RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN
        PERFORM nextval('public.refused');
        RAISE EXCEPTION 'unimplemented' USING ERRCODE = 'feature_not_supported';
      END $$;
      DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
      END $$
      """, in: database)
    let server = try TokenServerProcess(configuration: Self.configuration, directory: directory, servers: 3)
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let delays = try await delays(server, of: device)
    print("without notifications: \(delays[delays.count / 2]), at most \(delays[delays.count - 1])")
    #expect(delays[delays.count / 2] < .seconds(3))
    #expect(try TestPostgreSQL.query("SELECT is_called FROM refused", in: database) == "t\n")
  }
}
