// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// The server counts per user and token; a token cannot get an attempt back.
  @Suite struct PINLimits {
    @Test func theLimitEndsTheAccountOnBothSidesAndNoOther() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withPINScene(users: ["alice", "bob"]) { scene in
        let transaction = try await scene.askForPIN(callback: sink.address)
        let mark = try scene.token.log.mark
        for guess in ["24601", "24602", "24603"] { try await scene.token.type(guess) }
        #expect(try await scene.settled(transaction).contains("(9003)"))
        let result = try await scene.portal.finalResult(of: transaction)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "invalid_answer")
        #expect(result.usedAuthenticationAttempts == 3)
        #expect(try await sink.firstCall().members["transaction_id"] == transaction)

        try await scene.token.log.line(with: "] connected to", from: mark)
        #expect(try await scene.token.accounts() == [.init(account: "bob", stage: "active")])
        #expect(try await scene.token.audit().last { $0.kind == "wiped" }?.account == "alice")
        #expect(try await scene.server.devices().flatMap(\.users).map(\.user) == ["bob"])
        #expect(try await scene.portal.devices().isEmpty)
        // Also if another account is usable.
        try await scene.token.shows("must be enrolled (again)")
        try await scene.expectApproval(of: "bob", typing: "80261")
        #expect(try await scene.token.status().pins?.map(\.account) == ["bob"])
      }
    }

    @Test func anOldImageGivesNoGuessBack() async throws {
      try await withPINScene { scene in
        let image = try await scene.saveImage("before")
        let transaction = try await scene.askForPIN()
        try await scene.token.type("24601")
        try await scene.token.type("24602")
        try await scene.token.log.line(with: "pin-wrong request \(transaction)", "1 of 3 attempts left")

        try await scene.putBack(image)
        try await scene.token.log.line(with: "opened request \(transaction)")
        let counts = try #require(try await scene.token.status().pin())
        #expect(counts == .init(account: "alice", previousFailureCount: 2, remainingFailureCount: 1))
        try await scene.token.type("24603")
        #expect(try await scene.settled(transaction).contains("(9003)"))
        #expect(try await scene.token.accounts().isEmpty)

        // The account itself is not restored either.
        try await scene.putBack(image)
        try await scene.token.log.line(with: "wiped")
        #expect(try await scene.token.accounts().isEmpty)
        #expect(try await scene.server.account() == nil)
      }
    }

    @Test func anImageFromBeforeAPINChangeOpensNothing() async throws {
      try await withPINScene { scene in
        let old = try await scene.saveImage("old")
        try await scene.changePIN(from: "13589", to: "80261")
        let new = try await scene.saveImage("new")

        try await scene.putBack(old)
        let transaction = try await scene.askForPIN()
        for (pin, failures) in [("13589", 1), ("80261", 2)] {
          try await scene.token.type(pin)
          try await scene.token.log.line(with: "pin-wrong request \(transaction)", "\(3 - failures) of 3 attempts left")
          #expect(try await scene.server.pinFailures() == failures)
        }
        try await scene.portal.cancel(transaction)
        _ = try await scene.settled(transaction)

        try await scene.putBack(new)
        try await scene.expectApproval(typing: "80261")
      }
    }

    @Test func twoTokensOfOneUserCountEachForItself() async throws {
      try await withPINScene { scene in
        let folder = scene.folder
        let token = TestToken(state: folder.file("second"), board: folder.file("board.toml"))
        defer { token.end() }
        try await token.start()
        let uri = try await scene.server.activation(for: "alice")
        try await token.enrol(uri, name: "alice", choosing: "97502").succeeded()
        try await token.log.line(with: "] connected to")
        let device = try #require(try await scene.portal.devices().map(\.id).first { $0 != scene.device })
        let second = Scene(
          folder: folder, server: scene.server, token: token, portal: scene.portal, device: device, account: "alice")

        let requests = (try await scene.askForPIN(), try await second.askForPIN())
        async let mine = scene.token.type(Scene.wrongPIN)
        async let other = token.type(Scene.wrongPIN)
        _ = try await (mine, other)
        for (scene, request) in [(scene, requests.0), (second, requests.1)] {
          try await scene.token.log.line(with: "pin-wrong request \(request)", "2 of 3 attempts left")
        }
        try await scene.token.type(Scene.wrongPIN)
        // The PIN of one token is a wrong PIN on the other.
        try await token.type("97502")
        #expect(try await second.settled(requests.1).hasPrefix("approved, receipt "))
        try await scene.token.log.line(with: "pin-wrong request \(requests.0)", "1 of 3 attempts left")
        #expect(try await scene.server.pinFailures(on: scene.device) == 2)
        #expect(try await scene.server.pinFailures(on: second.device) == 0)
        try await scene.token.type("13589")
        #expect(try await scene.settled(requests.0).hasPrefix("approved, receipt "))
        #expect(try await scene.server.pinFailures(on: scene.device) == 0)
      }
    }
  }
}
