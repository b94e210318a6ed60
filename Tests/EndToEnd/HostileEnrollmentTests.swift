// SPDX-License-Identifier: Apache-2.0
import Foundation
import HTTP
import ProgramHarness
import RelayProtocol
import Synchronization
import Testing

extension EndToEnd {
  /// A network process that was taken over before an enrollment, in which the keys are exchanged: what it sees, and
  /// what it can do.
  @Suite struct HostileEnrollments {
    /// Eight digits, because they do not occur by chance.
    private static let settings = "max_pin_attempts = 3\n[application.pin_policy]\nlength = 8"
    private static let pin = "27049163"
    private static let attackersPIN = "71940258"

    @Test("It sees the activation code, but no PIN, and nothing that the PIN decrypts") func seesNoPIN() async throws {
      try await withHostileScene { fixture, orders in
        let token = fixture.token
        let uri = try await fixture.server.activation(for: "alice")
        try await token.enroll(uri, name: "alice", choosing: Self.pin).succeeded()
        let enrolled = try await fixture.enrolled()
        try await enrolled.expectApproval(typing: Self.pin)
        try await token.stop()

        let seen = Data(orders.all.joined())
        func isSeen(_ bytes: some Sequence<UInt8>) -> Bool { seen.range(of: Data(bytes)) != nil }
        // Control: the search finds what every network process sees.
        let code = try #require(uri.firstMatch(of: /code=([0-9]+)/)).1
        #expect(isSeen(code.utf8))
        #expect(!isSeen(Self.pin.utf8) && !isSeen(Self.pin.utf8.map { $0 - 48 }))
        let secrets = try await run(Program.cardSecrets, [token.state, Self.pin]).succeeded().output
        #expect(secrets.split(separator: "\n").count == 3)
        for line in secrets.split(separator: "\n") {
          let (name, text) = (line.prefix { $0 != " " }, line.drop { $0 != " " }.dropFirst())
          let bytes = Data(
            stride(from: 0, to: text.count, by: 2).compactMap { UInt8(text.dropFirst($0).prefix(2), radix: 16) })
          let base64 = bytes.base64EncodedString().prefix(40)
          let base64URL = base64.replacing("+", with: "-").replacing("/", with: "_")
          #expect(bytes.count == 32 && !isSeen(bytes) && !isSeen(text.utf8), "\(name)")
          #expect(!isSeen(base64.utf8) && !isSeen(base64URL.utf8), "\(name)")
        }
      }
    }

    @Test("With the code it enrolls an attacker, who answers without the user, until that device is deleted")
    func enrollsAnAttacker() async throws {
      try await withHostileScene { fixture, orders in
        let (server, token, portal) = (fixture.server, fixture.token, fixture.portal)
        let uri = try await server.activation(for: "alice")
        // The user's enrollment gets no further than its first order.
        orders.isPassing = false
        #expect(try await token.command("enroll", uri, "--name", "alice").exit != .code(0))
        let stolen = try #require(orders.all.compactMap(Self.activation).first)
        let attacker = TestToken(
          state: fixture.folder.file("attacker"), board: fixture.folder.file("board.toml"), isSplit: false)
        defer { attacker.end() }
        try await attacker.start()
        try await attacker.enroll(stolen, name: "alice", choosing: Self.attackersPIN).succeeded()
        let theirs = try #require(try await portal.devices().first).id

        // What it can fake: a login by button, and a payment with a PIN that it has chosen itself.
        let login = try await portal.ask(on: theirs)
        try await attacker.answer(login, with: .hold)
        #expect(try await portal.finalResult(of: login).isAuthenticated)
        let payment = try await portal.ask(on: theirs, type: "payment")
        try await attacker.type(Self.attackersPIN)
        #expect(try await portal.finalResult(of: payment).isAuthenticated)
        // What it cannot: use the token of the user, who notices that the code is used.
        orders.isPassing = true
        #expect(try await token.command("enroll", uri, "--name", "alice").exit != .code(0))
        #expect(try await token.audit().allSatisfy { !["enrolled", "decided"].contains($0.kind) })

        // What ends it.
        try await server.command("device", "delete", theirs)
        let again = try await server.activation(for: "alice")
        try await token.enroll(again, name: "alice", choosing: Self.pin).succeeded()
        try await fixture.enrolled().expectApproval(typing: Self.pin)
        #expect(try await portal.devices().map(\.id).contains(theirs) == false)
        try await attacker.log.line(with: "wiped: ")
      }
    }

    /// The activation URI of an order that has an activation code.
    private static func activation(in order: [UInt8]) -> String? {
      guard case .send(let request, let trust)? = try? RelayOrder(order),
        let code = request.headers["Authorization"]?.wholeMatch(of: /Bearer ([0-9]{13})/)?.1,
        let server = request.url.prefixMatch(of: /https:\/\/[^\/]+/)?.output
      else { return nil }
      func encoded(_ text: some StringProtocol) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      }
      return "approvaltoken://activate?server=\(encoded(server))&code=\(code)"
        + trust.pins.map { "&pin_sha256=\(encoded($0))" }.joined()
    }

    /// A token without accounts behind a network process that records what it is asked.
    private func withHostileScene(
      _ body: (EndToEndFixture, RecordedOrders) async throws -> Void
    ) async throws {
      try await withPINScene(users: [], settings: Self.settings, isSplit: true) { fixture in
        let orders = RecordedOrders()
        try await fixture.token.stop()
        let path = fixture.folder.file("hostile.relay")
        let hostile = try HostileNetwork(at: path, before: fixture.token.relayPath) { orders.add($0) }
        defer { hostile.end() }
        try await fixture.token.startDevice(at: path)
        try await body(fixture, orders)
        // The scene verifies the audit chain.
        if try !fixture.token.running.isRunning { try await fixture.token.start() }
      }
    }
  }
}

private final class RecordedOrders: Sendable {
  private let state = Mutex((orders: [[UInt8]](), isPassing: true))

  var all: [[UInt8]] { state.withLock { $0.orders } }

  /// Whether orders reach the real network process.
  var isPassing: Bool {
    get { state.withLock { $0.isPassing } }
    set { state.withLock { $0.isPassing = newValue } }
  }

  /// - Returns: whether to pass it on.
  func add(_ order: [UInt8]) -> Bool {
    state.withLock { state in
      state.orders.append(order)
      return state.isPassing
    }
  }
}

extension EndToEndFixture {
  /// The same with alice's device.
  fileprivate func enrolled() async throws -> EndToEndFixture {
    EndToEndFixture(
      folder: folder, server: server, token: token, portal: portal,
      device: try #require(try await portal.devices().first).id, account: "alice")
  }
}
