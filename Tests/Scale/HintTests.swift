// SPDX-License-Identifier: Apache-2.0
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

  @Test("A connected device learns of each request at once, and counts as connected at all servers") func hints()
    async throws
  {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 3)
    let portal = try server.addPortal()
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let stream = try device.openEventStream()
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
    stream.send(SIGKILL)
    let median = delays.sorted()[delays.count / 2]
    print("from the portal's request to the device: \(median) (median of \(delays.count), with two calls of curl)")
    #expect(median < .seconds(1))
    // Deregistered by a command: the stream at whichever server gets the event and ends.
    let other = try device.openEventStream()
    try server.admin("device", "delete", device.clientID)
    var told = false
    while let line = other.nextLine() { told = told || line.contains("device-revoked") }
    #expect(told)
  }
}
