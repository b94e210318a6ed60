// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import ServerTestSupport
import Testing

/// `PUT …/push {"transport":"mqtt"}`. There is no broker at the configured port: the server does not wait for one.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MailboxTests {
  private static let broker = """
    [mqtt]
    broker = "127.0.0.1:1"
    topic_prefix = "hints"
    [[type]]
    name = "urgent"
    method = "push"
    delivery_required = true
    """

  private func setTransport(
    _ transport: DeviceConfiguration.Transport, of device: DeviceClient
  ) throws -> Curl.Reply {
    try device.call(
      "PUT", "/device/v1/profiles/\(device.profileID)/push", body: PushEnrollmentRequest(transport: transport))
  }

  private func transports(of device: DeviceClient) throws -> [DeviceConfiguration.Transport] {
    try device.call("GET", "/device/v1/configuration").expect(200).decoded(DeviceConfiguration.self).transports
  }

  @Test("A device chooses for itself and keeps its mailbox") func aDeviceChoosesForItselfAndKeepsItsMailbox() throws {
    let server = try TokenServerProcess(configuration: Self.broker)
    let (alice, bob) = (
      try DeviceClient.enrolled(at: server, as: "alice"), try DeviceClient.enrolled(at: server, as: "bob")
    )
    #expect(try transports(of: alice) == [.sse, .longpoll, .mqtt])
    let first = try setTransport(.mqtt, of: alice).expect(200).decoded(PushEnrollmentResponse.self)
    let mailbox = try #require(first.mailbox)
    #expect(mailbox.hasPrefix("hints/") && mailbox.dropFirst(6).count == 32)
    #expect(!mailbox.lowercased().contains(alice.clientID.prefix(8).lowercased()))
    #expect(try setTransport(.mqtt, of: alice).expect(200).decoded(PushEnrollmentResponse.self) == first)
    let others = try setTransport(.mqtt, of: bob).expect(200).decoded(PushEnrollmentResponse.self)
    #expect(others.mailbox != nil && others.mailbox != mailbox && others.pushToken != first.pushToken)
    let back = try setTransport(.sse, of: alice).expect(200).decoded(PushEnrollmentResponse.self)
    #expect(back.mailbox == nil && back.pushToken == first.pushToken)
  }

  @Test("It is no way to push enrollment") func itIsNoWayToPushEnrollment() throws {
    let device = try ReadyServer(configuration: Self.broker).device
    try device.call("DELETE", "/device/v1/profiles/\(device.profileID)/push").expect(204)
    #expect(try setTransport(.mqtt, of: device).status == 401)
    try device.enrollForPush().expect(200)
    try setTransport(.mqtt, of: device).expect(200)
  }

  @Test("Without a broker there is none") func withoutABrokerThereIsNone() throws {
    let device = try ReadyServer().device
    #expect(try transports(of: device) == [.sse, .longpoll])
    let reply = try setTransport(.mqtt, of: device)
    #expect(reply.status == 400 && reply.json["detail"] as? String == "this server has no broker")
    try setTransport(.longpoll, of: device).expect(200)
  }
}
