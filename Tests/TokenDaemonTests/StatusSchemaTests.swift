// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import JSONSchema
import JSONValues
import Testing

@Suite("The output of `status`", .timeLimit(.minutes(5))) struct StatusSchemaTests {
  private static let transaction = "11111111-1111-4111-8111-111111111111"

  private func violations(of status: ServiceStatus) throws -> [String] {
    try JSONSchema(named: "status").violations(in: String(decoding: JSONMessage.encode(status), as: UTF8.self))
  }

  @Test("Has the form of its schema, of a running service") func running() async throws {
    let fixture = try ServiceFixture()
    try await fixture.enroll("mail")
    let status = try await fixture.answer(.status, as: ServiceStatus.self)
    #expect(try violations(of: status) == [])
  }

  @Test("Has the form of its schema, without a service") func stopped() throws {
    var counted = ServiceStatus(running: false, accounts: 1, mustEnroll: 0)
    counted.remedy = "start it"
    var unknown = ServiceStatus(accountsUnknown: "no device secret")
    unknown.remedy = "start it"
    for status in [counted, unknown] { #expect(try violations(of: status) == []) }
  }

  /// Fails if a member is added that the schema does not describe.
  @Test("Has no member that its schema lacks") func allMembers() throws {
    var status = ServiceStatus(running: true, accounts: 2, mustEnroll: 1)
    status.processID = 7
    status.board = "simulated"
    status.isSimulated = true
    status.isNetworkSeparate = true
    status.networkSocket = "/run/relay.sock"
    status.isStopping = false
    status.troubles = ["the keypad is unplugged"]
    status.led = LEDStatus(meaning: "idle, connected", color: "dim green", isLit: false, count: 0, entries: 3)
    status.servers = [.init(server: "auth.example.org", connection: "connected")]
    status.pins = [.init(account: "ann", maxFailureCount: 3, previousFailureCount: 1, remainingFailureCount: 2)]
    status.loggedIn = "ann"
    status.pending = 1
    status.requests = [
      PendingSummary(
        transaction: Self.transaction, account: "ann", server: "auth.example.org", expiresInSeconds: 60)
    ]
    status.panel = PanelStatus(request: Self.transaction, pressCounts: false, reason: "too early", obstacle: "why")
    status.lost = ["ben"]
    status.codes = [
      .init(
        account: "ann", transaction: Self.transaction, code: "1234", message: "type it", receivedAtMilliseconds: 1,
        expiresInSeconds: 60)
    ]
    status.unconfirmed = [.init(transaction: Self.transaction, account: "ann", server: "auth.example.org")]
    // Of a service that does not run.
    let absent = ["remedy", "accountsUnknown"]
    for (name, value) in Mirror(reflecting: status).children where !absent.contains(name ?? "") {
      #expect("\(value)" != "nil", "\(name ?? "?")")
    }
    #expect(try violations(of: status) == [])
  }
}
