// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import ReferenceProtocol
import Synchronization
import Testing

@testable import ReferenceAdapter

/// The certificate pins that an enrollment uses at a server that is known with pins.
@Suite(.timeLimit(.minutes(5))) struct EnrollmentPinTests {
  /// The pins of the connection of an enrollment whose URI has `pins`. The fake server implements no enrollment.
  /// - Parameter isKnown: whether the server is known, with other pins.
  private func pinsUsed(
    uri pins: [String], dropping: Bool = false, isKnown: Bool = true
  ) async throws -> (used: [String], stored: [String]) {
    let server = try FakeServer()
    let registry = MemoryRegistry()
    let http = server.makeHTTPTransport()
    _ = try server.adapter(http)
    var record = try server.registry.servers()[0]
    record.secrets = try DeviceCredentials(
      deviceKey: P256PrivateKey(), clientID: FakeServer.clientID, pins: ["the right one"]
    ).encoded()
    if isKnown { try registry.put(record) }
    let used = Mutex<[String]>([])
    let enrollment = Enrollment(registry: registry, in: server.environment, pinPrompter: nil, progress: { _ in }) {
      trust in
      used.withLock { $0 = trust.pins }
      return RecordingHTTPTransport { _ throws(HTTPTransportError) in throw .unreachable("no route") }
    }
    var trust = ServerTrust(pins: pins)
    trust.dropsPins = dropping
    let uri = ActivationURI(server: FakeServer.url, code: try #require(ActivationCode("0000000000000")), pins: pins)
    await #expect(throws: TokenServerError.self) {
      try await enrollment.enroll(
        uri, name: "new", trust: trust,
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    }
    return (used.withLock { $0 }, try DeviceCredentials(registry.servers()[0]).pins)
  }

  @Test("An enrollment without a pin uses the pins of earlier ones") func noPinKeepsPins() async throws {
    #expect(try await pinsUsed(uri: []).used == ["the right one"])
  }

  @Test("An enrollment that failed changes no stored pin", arguments: [[], ["another"]], [true, false])
  func failureChangesNothing(pins: [String], isDropping: Bool) async throws {
    #expect(try await pinsUsed(uri: pins, dropping: isDropping).stored == ["the right one"])
  }

  /// Fails if the pins of a URI are stored before its server is reached: they applied to all later enrollments there.
  @Test("An enrollment that did not reach its server leaves no pin") func unreachedServer() async throws {
    let pins = try await pinsUsed(uri: ["from a forged URI"], isKnown: false)
    #expect(pins.used == ["from a forged URI"] && pins.stored.isEmpty)
  }

  @Test("Only dropping removes pins, and a new pin replaces them") func droppingAndReplacing() async throws {
    #expect(try await pinsUsed(uri: [], dropping: true).used.isEmpty)
    #expect(try await pinsUsed(uri: ["another"]).used == ["another"])
  }
}
