// SPDX-License-Identifier: Apache-2.0
import Foundation
import HTTP
import MobileAuth
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

    // MARK: Between token and server

    @Test("Between token and server it can replace no key alone", arguments: ManInTheMiddle.Value.allCases)
    func replacesOneKey(value: ManInTheMiddle.Value) async throws {
      try await withMan(replacing: [value], thoroughly: false) { fixture, _ in
        let (server, token) = (fixture.server, fixture.token)
        let enrollment = try token.begin("enroll", try await server.activation(for: "alice"), "--name", "alice")
        // With these, it fails before the user is asked for a PIN.
        if ![.deviceKey, .ephemeralCertificate].contains(value) { try await token.choose(Self.pin) }
        let outcome = try await enrollment.outcome()
        #expect(outcome.exit != .code(0) && outcome.errors.contains(Self.failure(of: value)), "\(outcome.errors)")
        #expect(try await token.audit().allSatisfy { $0.kind != "enrolled" })
        #expect(try await server.account()?.push != true)

        try await enrollSoundly(fixture)
      }
    }

    private static func failure(of value: ManInTheMiddle.Value) -> String {
      switch value {
      case .deviceKey: "it does not accept this device's client credentials"
      case .ephemeralCertificate: "the refresh token is not encrypted to this device"
      case .accountCertificate, .serverCertificate: "the proof is not this device's, or not for this key exchange"
      case .serverFingerprint: "its OpenPGP certificate cannot be used"
      }
    }

    @Test("Between token and server, with its own keys on both sides, it answers without the user and without the PIN")
    func replacesAllKeys() async throws {
      let all = Set(ManInTheMiddle.Value.allCases)
      try await withMan(replacing: all, thoroughly: true) { fixture, man in
        let (server, token) = (fixture.server, fixture.token)
        let uri = try await server.activation(for: "alice")
        try await token.enroll(uri, name: "alice", choosing: Self.pin).succeeded()
        // Neither side notices.
        #expect(try await token.accounts() == [.init(account: "alice", stage: "active")])
        #expect(try await server.account()?.pin == "active")
        let device = try #require(try await fixture.portal.devices().first).id
        man.silence()
        for type in ["login", "payment"] {
          let transaction = try await fixture.portal.ask(on: device, type: type)
          try await man.approve(transaction)
          #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated, "\(type)")
          #expect(try await token.audit(of: transaction).isEmpty)
        }

        // What ends it.
        let late = try await fixture.portal.ask(on: device)
        try await server.command("device", "delete", device)
        await #expect(throws: TokenServerError.self) { try await man.approve(late) }
        try await enrollSoundly(fixture, removing: "alice")
      }
    }

    /// Enrolls with a sound network process, also if the server knows this device with a key of the attacker.
    /// - Parameter account: of the token, whose keys the server does not know.
    private func enrollSoundly(_ fixture: EndToEndFixture, removing account: String? = nil) async throws {
      let token = fixture.token
      try await token.stop()
      try await token.startDevice()
      if let account {
        let uri = try await fixture.server.activation(for: "alice")
        let refused = try await token.command("enroll", uri, "--name", "again")
        #expect(refused.errors.contains(Self.failure(of: .deviceKey)), "\(refused)")
        _ = try await token.command("remove", account)
      }
      let uri = try await fixture.server.activation(for: "alice")
      try await token.enroll(uri, name: "alice", choosing: Self.pin).succeeded()
      try await fixture.enrolled().expectApproval(typing: Self.pin)
    }

    /// Fails if the time is that of requests that are repeated, 1.5 s.
    @Test("An enrollment waits for a network process that is slow to accept an order") func slow() async throws {
      try await withPINScene(users: [], settings: Self.settings, isSplit: true) { fixture in
        try await behind({ .passed($0) }, fixture) { hostile in
          let uri = try await fixture.server.activation(for: "alice")
          hostile.delay = .seconds(2)
          try await fixture.token.enroll(uri, name: "alice", choosing: Self.pin).succeeded()
          hostile.delay = .zero
          try await fixture.enrolled().expectApproval(typing: Self.pin)
        }
      }
    }

    // MARK: Scenes

    /// A token without accounts behind a network process that records what it is asked.
    private func withHostileScene(_ body: (EndToEndFixture, RecordedOrders) async throws -> Void) async throws {
      try await withPINScene(users: [], settings: Self.settings, isSplit: true) { fixture in
        let orders = RecordedOrders()
        try await behind({ orders.add($0) ? .passed($0) : .unanswered }, fixture) { _ in
          try await body(fixture, orders)
        }
      }
    }

    /// A token without accounts behind an attacker who replaces keys.
    private func withMan(
      replacing values: Set<ManInTheMiddle.Value>, thoroughly isThorough: Bool,
      _ body: (EndToEndFixture, ManInTheMiddle) async throws -> Void
    ) async throws {
      try await withPINScene(users: [], settings: Self.settings, isSplit: true) { fixture in
        let man = try ManInTheMiddle(
          replacing: values, thoroughly: isThorough, through: fixture.token.relayPath)
        try await behind({ man.treat($0) }, fixture) { _ in try await body(fixture, man) }
      }
    }

    private func behind(
      _ treat: @escaping @Sendable ([UInt8]) -> HostileNetwork.Treatment, _ fixture: EndToEndFixture,
      _ body: (HostileNetwork) async throws -> Void
    ) async throws {
      try await fixture.token.stop()
      let path = fixture.folder.file("hostile.relay")
      let hostile = try HostileNetwork(at: path, before: fixture.token.relayPath, treat: treat)
      defer { hostile.end() }
      try await fixture.token.startDevice(at: path)
      try await fixture.token.log.line(with: "reached the network process")
      try await body(hostile)
      // The scene verifies the audit chain.
      if try !fixture.token.running.isRunning { try await fixture.token.start() }
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
