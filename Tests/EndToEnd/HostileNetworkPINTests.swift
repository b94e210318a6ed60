// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness
import Testing

extension EndToEnd {
  /// A network process that was taken over, and requests that need the PIN.
  @Suite struct HostileNetworkPINs {
    /// How the token hears of requests.
    enum Hints: Sendable { case stream, broker }

    private static let dice = Dice.fresh()
    private static let pin = "13589"

    @Test(
      "Beside exchanges that are attacked, only requests whose PIN was typed are approved, and each entry counts once",
      arguments: [(0, Hints.stream), (1, .stream), (2, .broker)])
    func onlyWithThePIN(lane: Int, hints: Hints) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      print("hostile network process with seed \(Self.dice.seed), lane \(lane), \(hints)")
      let entries = [Entry.right, .right, .wrong, .wrong, .nothing].shuffled(using: &dice)
      try await withScene(hints) { fixture in
        let scene = try await HostileScene(fixture, dice)
        defer { scene.hostile.end() }
        var wrong = 0
        for entry in entries { wrong += try await attempt(entry, scene) }
        #expect(wrong >= 2 && fixture.server.logged(": PIN wrong") == wrong)
        #expect(scene.hostile.played.values.reduce(0, +) > 1, "\(scene.hostile.played)")
        print("lane \(lane): \(scene.hostile.played)")
        try await fixture.expectApproval(typing: Self.pin)
      }
    }

    private func withScene(_ hints: Hints, _ body: (EndToEndFixture) async throws -> Void) async throws {
      let settings = "max_pin_attempts = 10"
      guard hints == .broker else { return try await withPINScene(settings: settings, isSplit: true, body) }
      let broker = try await TestBroker()
      let address =
        "[mqtt]\nbroker = \"localhost:\(broker.port)\"\nauthorities = \"\(broker.authority)\"\n"
        + "username = \"\(TestBroker.user)\"\n"
      let password = try broker.directory.write(TestBroker.password + "\n", to: "password")
      let configuration = address + "password_file = \"\(password)\"\nreplaces_event_stream = true\n"
      try await withPINScene(
        settings: settings, types: address + "password = \"\(TestBroker.password)\"\n", isSplit: true,
        configuration: { _ in configuration }
      ) { fixture in
        try await fixture.token.log.line(with: "listening at the broker")
        try await body(fixture)
      }
    }

    private enum Entry { case right, wrong, nothing }

    /// A payment for which the PIN, a wrong PIN or nothing is typed under attack. Without attacks, an entry whose
    /// answer was lost is repeated; if it was only late at the server, both count.
    /// - Returns: the number of wrong PINs that the server has verified.
    private func attempt(_ entry: Entry, _ scene: HostileScene) async throws -> Int {
      let (token, server, portal) = (scene.fixture.token, scene.fixture.server, scene.fixture.portal)
      let (wrongBefore, failures) = (server.logged(": PIN wrong"), try await server.pinFailures() ?? 0)
      func verified() -> Int { server.logged(": PIN wrong") - wrongBefore }
      let digits = entry == .right ? Self.pin : EndToEndFixture.wrongPIN
      func type() async throws { try await token.press(keys: digits.map(String.init) + ["enter"]) }
      let transaction: String
      if entry == .nothing {
        transaction = try await scene.ask(type: "payment")
        try await Task.sleep(for: .seconds(1))
      } else {
        transaction = try await scene.askUntilDecided(type: "payment", by: type).transaction
        // The outcome, if the token hears of it under attack.
        let outcomes = ["settled", "pin-wrong"].map { "\($0) request \(transaction)" }
        _ = try await token.log.first(from: 0, within: .seconds(5)) { line in outcomes.contains { line.contains($0) } }
      }
      try await scene.calm()
      let isApproved = try await portal.result(of: transaction).isAuthenticated
      #expect(!isApproved || entry == .right, "approved without the PIN")
      #expect(entry == .wrong || verified() == 0, "\(verified()) wrong PINs verified")
      if entry == .right ? !isApproved : entry == .wrong && verified() == 0 {
        // It has ended if the token could not open it again, because it was changed.
        guard try await scene.decide(transaction, by: type) != nil else {
          return try await verified() + attempt(entry, scene)
        }
        _ = try await eventually("the verification of the second entry") {
          let isVerified =
            try await entry == .wrong ? verified() > 0 : portal.result(of: transaction).isAuthenticated
          return isVerified ? true : nil
        }
      }

      _ = try await eventually("the number of wrong PINs on the token") {
        let counted = entry == .right ? 0 : failures + verified()
        return try await token.status().pin()?.previousFailureCount == counted ? true : nil
      }
      let audit = try await token.audit(of: transaction)
      // The number of attempts is final then.
      if entry != .right { try await portal.cancel(transaction) }
      let result = try await portal.result(of: transaction)
      let used = result.usedAuthenticationAttempts ?? 0
      if entry == .wrong { _ = try await eventually("the verification") { verified() == used ? true : nil } }
      let seen = Comment(rawValue: "\(entry): \(result), \(audit.map { "\($0.kind) \($0.detail)" })")
      #expect(result.isAuthenticated == (entry == .right), seen)
      let decisions = audit.count { $0.kind == "decided" }
      #expect((entry == .nothing ? 0...0 : 1...2).contains(decisions), seen)
      #expect((entry == .nothing ? 0...0 : entry == .right ? 1...1 : 1...max(1, decisions)).contains(used), seen)
      #expect(verified() == (entry == .wrong ? used : 0), seen)
      #expect(try await server.pinFailures() == (entry == .right ? 0 : failures + verified()))
      return verified()
    }
  }
}
