// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import ReferenceProtocol
import ServerBackends

/// Receives hints from the device's mailbox. A hint only causes the pending list to be read, so a publisher with
/// access to the topic can do no more than that.
struct BrokerEventFeed: Sendable {
  private static let readingInterval = Duration.seconds(60)

  let client: DeviceClient
  let broker: any HintBroker
  let environment: TokenEnvironment

  /// Runs one connection.
  /// - Parameter profiles: the profiles of this device.
  /// - Throws: always, a `TokenServerError`.
  func run(_ profiles: [String], _ yield: @escaping @Sendable (Hint) -> Void) async throws -> Never {
    let mailbox = try await findMailbox(profiles)
    // While the broker is unreachable, the list is at least read at each attempt, and once a minute while one lasts.
    let readings = Task { [environment] in
      while true {
        yield(.pendingChanged)
        try await environment.sleep(for: Self.readingInterval)
      }
    }
    defer { readings.cancel() }
    let why = await broker.read(mailbox, of: client.clientID ?? "") {
      readings.cancel()
      yield(.connected)
    } take: { message in
      if let event = try? JSON.decode(DeviceEvent.self, from: message) { yield(event.hint) }
    }
    try Task.checkCancellation()
    throw TokenServerError.unreachable(why)
  }

  /// Runs in addition to the event stream: reconnects with backoff and does not end the hint stream on errors.
  func runBeside(_ profiles: [String], _ yield: @escaping @Sendable (Hint) -> Void) async throws -> Never {
    var pause = Duration.seconds(1)
    while true {
      let began = environment.now
      do { try await run(profiles, yield) } catch is TokenServerError {
        if environment.now - began >= .seconds(60) { pause = .seconds(1) }
      }
      try await environment.sleep(for: pause)
      pause = min(pause * 2, .seconds(60))
    }
  }

  /// Enrolls each profile for hints by MQTT. All profiles of the device have the same mailbox.
  private func findMailbox(_ profiles: [String]) async throws -> String {
    var mailbox: String?
    for profile in profiles {
      let answer = try await client.call(
        .put, "/profiles/\(profile)/push", body: JSON.encode(PushEnrollmentRequest(transport: .mqtt)))
      mailbox = try DeviceClient.decode(PushEnrollmentResponse.self, answer).mailbox ?? mailbox
    }
    guard let mailbox else { throw TokenServerError.unreachable("the token server names no mailbox") }
    return mailbox
  }
}
