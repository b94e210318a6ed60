// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// Deleted and revoked accounts.
  @Suite struct Revocations {
    @Test func aDeletedDeviceWipesItselfAndCanBeEnrolledAgain() async throws {
      try await withScene { scene in
        try await scene.server.command("device", "delete", scene.device)
        try await scene.token.log.line(with: "wiped")
        try await scene.token.shows("must be enrolled (again)")
        #expect(try await scene.token.accounts().isEmpty)
        #expect(try await scene.portal.devices().isEmpty)

        try await scene.token.enrol(try await scene.server.activation(for: "alice")).succeeded()
        try await scene.token.shows("idle, connected")
        let devices = try await scene.portal.devices()
        #expect(devices.count == 1)
        try await expectApproval(on: try #require(devices.first).id, in: scene)
      }
    }

    @Test func aDeviceDeletedWhileItWasOffIsEnrolledAsANewOne() async throws {
      try await withScene { scene in
        try await scene.token.stop()
        try await scene.server.command("device", "delete", scene.device)
        try await scene.token.enrol(try await scene.server.activation(for: "alice"), name: "new").succeeded()
        #expect(try await scene.token.accounts() == [.init(account: "new", stage: "active")])
        try await scene.token.startConnected()
        let devices = try await scene.portal.devices().map(\.id)
        #expect(devices.count == 1 && devices != [scene.device])
        try await expectApproval(on: try #require(devices.first), in: scene)
      }
    }

    @Test func disablingMobileAuthenticationEndsTheAccountUntilItIsEnrolledAgain() async throws {
      try await withScene { scene in
        let reply = try await scene.portal.call(
          "POST", "/users/alice/devices/\(scene.device)/disableMobileAuthentication")
        #expect(reply.status == 204)
        try await scene.token.log.line(with: "disenrolled")
        try await scene.token.shows("must be enrolled (again)")
        #expect(
          try await scene.token.accounts() == [.init(account: scene.account, stage: "must-enrol-again")])
        #expect(try await scene.token.command("doctor").exit == .code(1))

        try await scene.token.enrol(try await scene.server.activation(for: "alice")).succeeded()
        try await scene.token.shows("idle, connected")
        #expect(try await scene.token.accounts().map(\.stage) == ["active"])
        try await expectApproval(on: scene.device, in: scene)
      }
    }

    @Test func aRemovedAccountIsGoneHereAndThere() async throws {
      try await withScene { scene in
        struct Facts: Decodable { let serverTold: Bool }
        let facts = try await scene.token.command("remove", scene.account, "--json").succeeded().decoded(Facts.self)
        #expect(facts.serverTold)
        try await scene.token.shows("must be enrolled (again)")
        #expect(try await scene.token.accounts().isEmpty)
        #expect(try await scene.portal.devices().isEmpty)
        try await scene.expectRemoval()
      }
    }

    @Test func anAccountCanBeRemovedWithoutItsServer() async throws {
      try await withScene { scene in
        try await scene.server.stop()
        struct Facts: Decodable { let serverTold: Bool }
        let facts = try await scene.token.command("remove", scene.account, "--json").succeeded().decoded(Facts.self)
        #expect(!facts.serverTold)
        #expect(try await scene.token.accounts().isEmpty)
      }
    }

    @Test func twoPeopleShareOneTokenAndEachIsRemovedAlone() async throws {
      try await withScene { scene in
        try await scene.server.addUser("bob")
        let mark = try scene.token.log.mark
        try await scene.token.enrol(try await scene.server.activation(for: "bob"), name: "bob").succeeded()
        try await scene.token.log.line(with: "] connected to", from: mark)
        let devices = try await scene.server.devices()
        #expect(devices.map(\.deviceId) == [scene.device])
        #expect(devices.first?.users.map(\.user).sorted() == ["alice", "bob"])

        let forBob = try await scene.portal.ask("bob", on: scene.device)
        try await scene.token.log.line(with: "opened request \(forBob) account bob")
        try await scene.token.answer(forBob, with: .hold)
        #expect(try await scene.portal.finalResult(of: forBob).isAuthenticated)

        try await scene.token.command("remove", "bob").succeeded()
        #expect(try await scene.token.accounts() == [.init(account: scene.account, stage: "active")])
        #expect(try await scene.portal.devices(of: "bob").isEmpty)
        try await expectApproval(on: scene.device, in: scene)
      }
    }

    @Test func enrollingTheSamePersonAnewReplacesTheAccount() async throws {
      try await withScene { scene in
        try await scene.token.enrol(try await scene.server.activation(for: "alice"), name: "again").succeeded()
        _ = try await eventually("one account") {
          let accounts = try await scene.token.accounts()
          return accounts == [.init(account: "again", stage: "active")] ? true : nil
        }
        #expect(try await scene.portal.devices().map(\.id) == [scene.device])
        try await scene.token.shows("idle, connected")
        try await expectApproval(on: scene.device, in: scene)
      }
    }
  }
}

private func expectApproval(on device: String, in scene: Scene) async throws {
  let transaction = try await scene.portal.ask(on: device)
  try await scene.token.answer(transaction, with: .hold)
  #expect(try await scene.portal.finalResult(of: transaction).isAuthenticated)
}
