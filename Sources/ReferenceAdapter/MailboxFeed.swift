import Courier
import MobileAuth
import ReferenceProtocol

/// Another way for hints than the event stream: the token server publishes them to a mailbox at a broker.
public protocol HintBroker: Sendable {
  /// Whether the event stream is left out where there is a mailbox.
  var replacesEventStream: Bool { get }

  /// Reads one mailbox over one connection, until that ends.
  /// - Parameters:
  ///   - device: whom the mailbox belongs to, as the token server calls it.
  ///   - isUp: called once the mailbox is open; what was published before may follow.
  ///   - take: called with each message.
  /// - Returns: why the connection ended.
  func read(
    _ mailbox: String, of device: String, isUp: @escaping @Sendable () -> Void,
    take: @escaping @Sendable ([UInt8]) -> Void
  ) async -> String
}

/// Hints from a mailbox. Like those of the event stream they only wake: whoever can write into the mailbox can make the
/// token look at the list, and nothing else.
struct MailboxFeed: Sendable {
  let client: DeviceClient
  let broker: any HintBroker
  let timekeeper: any Timekeeper

  /// One connection.
  /// - Parameter profiles: of this device.
  /// - Throws: always, a `TokenServerFault`.
  func run(_ profiles: [String], _ yield: @escaping @Sendable (Hint) -> Void) async throws -> Never {
    let mailbox = try await findMailbox(profiles)
    // As long as the broker is away, each try is at least a look at the list.
    yield(.pendingChanged)
    let why = await broker.read(mailbox, of: client.clientID ?? "") {
      yield(.connected)
    } take: { message in
      if let event = try? JSON.decode(DeviceEvent.self, from: message) { yield(event.hint) }
    }
    try Task.checkCancellation()
    throw TokenServerFault.unreachable(why)
  }

  /// Beside the event stream: never gives up, and pulls nothing down.
  func runBeside(_ profiles: [String], _ yield: @escaping @Sendable (Hint) -> Void) async throws -> Never {
    var pause = Duration.seconds(1)
    while true {
      let began = timekeeper.now
      do { try await run(profiles, yield) } catch is TokenServerFault {
        if timekeeper.now - began >= .seconds(60) { pause = .seconds(1) }
      }
      try await timekeeper.sleep(until: timekeeper.now + pause)
      pause = min(pause * 2, .seconds(60))
    }
  }

  /// Tells the server for each profile that hints are wanted there. The mailbox is the device's, so that all name one.
  private func findMailbox(_ profiles: [String]) async throws -> String {
    var mailbox: String?
    for profile in profiles {
      let answer = try await client.call(
        .put, "/profiles/\(profile)/push", body: JSON.encode(PushEnrolmentRequest(transport: .mqtt)))
      mailbox = try DeviceClient.decode(PushEnrolmentResponse.self, answer).mailbox ?? mailbox
    }
    guard let mailbox else { throw TokenServerFault.unreachable("the token server names no mailbox") }
    return mailbox
  }
}
