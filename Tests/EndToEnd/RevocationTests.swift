// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness
import Testing

extension EndToEnd {
  /// Deleted and revoked accounts.
  @Suite struct Revocations {
    @Test("A deleted device wipes itself and can be enrolled again")
    func aDeletedDeviceWipesItselfAndCanBeEnrolledAgain() async throws {
      try await withScene { fixture in
        try await fixture.server.command("device", "delete", fixture.device)
        try await fixture.token.log.line(with: "wiped")
        try await fixture.token.shows("must be enrolled (again)")
        #expect(try await fixture.token.accounts().isEmpty)
        #expect(try await fixture.portal.devices().isEmpty)

        try await fixture.token.enroll(try await fixture.server.activation(for: "alice")).succeeded()
        try await fixture.token.shows("idle, connected")
        let devices = try await fixture.portal.devices()
        #expect(devices.count == 1)
        try await expectApproval(on: try #require(devices.first).id, in: fixture)
      }
    }

    @Test("A device deleted while it was off is enrolled as a new one")
    func aDeviceDeletedWhileItWasOffIsEnrolledAsANewOne() async throws {
      try await withScene { fixture in
        try await fixture.token.stop()
        try await fixture.server.command("device", "delete", fixture.device)
        try await fixture.token.enroll(try await fixture.server.activation(for: "alice"), name: "new").succeeded()
        #expect(try await fixture.token.accounts() == [.init(account: "new", stage: "active")])
        try await fixture.token.startConnected()
        let devices = try await fixture.portal.devices().map(\.id)
        #expect(devices.count == 1 && devices != [fixture.device])
        try await expectApproval(on: try #require(devices.first), in: fixture)
      }
    }

    @Test("Disabling mobile authentication ends the account until it is enrolled again")
    func disablingMobileAuthenticationEndsTheAccountUntilItIsEnrolledAgain() async throws {
      try await withScene { fixture in
        let reply = try await fixture.portal.call(
          "POST", "/users/alice/devices/\(fixture.device)/disableMobileAuthentication")
        #expect(reply.status == 204)
        try await fixture.token.log.line(with: "disenrolled")
        try await fixture.token.shows("must be enrolled (again)")
        #expect(
          try await fixture.token.accounts() == [.init(account: fixture.account, stage: "must-enroll-again")])
        #expect(try await fixture.token.command("doctor").exit == .code(1))

        try await fixture.token.enroll(try await fixture.server.activation(for: "alice")).succeeded()
        try await fixture.token.shows("idle, connected")
        #expect(try await fixture.token.accounts().map(\.stage) == ["active"])
        try await expectApproval(on: fixture.device, in: fixture)
      }
    }

    @Test("A removed account is gone here and there") func aRemovedAccountIsGoneHereAndThere() async throws {
      try await withScene { fixture in
        struct Response: Decodable {
          let serverNotified: Bool
          private enum CodingKeys: String, CodingKey {
            case serverNotified
          }
        }
        let response = try await fixture.token.command("remove", fixture.account, "--json").succeeded().decoded(
          Response.self)
        #expect(response.serverNotified)
        try await fixture.token.shows("must be enrolled (again)")
        #expect(try await fixture.token.accounts().isEmpty)
        #expect(try await fixture.portal.devices().isEmpty)
        try await fixture.expectRemoval()
      }
    }

    @Test("An account can be removed without its server") func anAccountCanBeRemovedWithoutItsServer() async throws {
      try await withScene { fixture in
        try await fixture.server.stop()
        struct Response: Decodable {
          let serverNotified: Bool
          private enum CodingKeys: String, CodingKey {
            case serverNotified
          }
        }
        let response = try await fixture.token.command("remove", fixture.account, "--json").succeeded().decoded(
          Response.self)
        #expect(!response.serverNotified)
        #expect(try await fixture.token.accounts().isEmpty)
      }
    }

    @Test("Two users share one token, and each is removed alone") func twoUsersShareOneTokenAndEachIsRemovedAlone()
      async throws
    {
      try await withScene { fixture in
        try await fixture.server.addUser("bob")
        let mark = try fixture.token.log.mark
        try await fixture.token.enroll(try await fixture.server.activation(for: "bob"), name: "bob").succeeded()
        try await fixture.token.log.line(with: "] connected to", from: mark)
        let devices = try await fixture.server.devices()
        #expect(devices.map(\.deviceId) == [fixture.device])
        #expect(devices.first?.users.map(\.user).sorted() == ["alice", "bob"])

        let forBob = try await fixture.portal.ask("bob", on: fixture.device)
        try await fixture.token.log.line(with: "opened request \(forBob) account bob")
        try await fixture.token.answer(forBob, with: .hold)
        #expect(try await fixture.portal.finalResult(of: forBob).isAuthenticated)

        try await fixture.token.command("remove", "bob").succeeded()
        #expect(try await fixture.token.accounts() == [.init(account: fixture.account, stage: "active")])
        #expect(try await fixture.portal.devices(of: "bob").isEmpty)
        try await expectApproval(on: fixture.device, in: fixture)
      }
    }

    @Test("Enrolling the same user again replaces the account") func enrollingTheSameUserAgainReplacesTheAccount()
      async throws
    {
      try await withScene { fixture in
        try await fixture.token.enroll(try await fixture.server.activation(for: "alice"), name: "again").succeeded()
        _ = try await eventually("one account") {
          let accounts = try await fixture.token.accounts()
          return accounts == [.init(account: "again", stage: "active")] ? true : nil
        }
        #expect(try await fixture.portal.devices().map(\.id) == [fixture.device])
        try await fixture.token.shows("idle, connected")
        try await expectApproval(on: fixture.device, in: fixture)
      }
    }
  }
}

private func expectApproval(on device: String, in fixture: EndToEndFixture) async throws {
  let transaction = try await fixture.portal.ask(on: device)
  try await fixture.token.answer(transaction, with: .hold)
  #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
}
