// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// The server counts per user and token; a token cannot get an attempt back.
  @Suite struct PINLimits {
    @Test("The limit ends the account on both sides and no other") func theLimitEndsTheAccountOnBothSidesAndNoOther()
      async throws
    {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withPINScene(users: ["alice", "bob"]) { fixture in
        let transaction = try await fixture.askForPIN(callback: sink.address)
        let mark = try fixture.token.log.mark
        for guess in ["24601", "24602", "24603"] { try await fixture.token.type(guess) }
        #expect(try await fixture.settled(transaction).contains("(9003)"))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "invalid_answer")
        #expect(result.usedAuthenticationAttempts == 3)
        #expect(try await sink.firstCall().members["transaction_id"] == transaction)

        try await fixture.token.log.line(with: "] connected to", from: mark)
        #expect(try await fixture.token.accounts() == [.init(account: "bob", stage: "active")])
        #expect(try await fixture.token.audit().last { $0.kind == "wiped" }?.account == "alice")
        #expect(try await fixture.server.devices().flatMap(\.users).map(\.user) == ["bob"])
        #expect(try await fixture.portal.devices().isEmpty)
        // Also if another account is usable.
        try await fixture.token.shows("must be enrolled (again)")
        try await fixture.expectApproval(of: "bob", typing: "80261")
        #expect(try await fixture.token.status().pins?.map(\.account) == ["bob"])
      }
    }

    @Test("An old image gives no guess back") func anOldImageGivesNoGuessBack() async throws {
      try await withPINScene { fixture in
        let image = try await fixture.saveImage("before")
        let transaction = try await fixture.askForPIN()
        try await fixture.token.type("24601")
        try await fixture.token.type("24602")
        try await fixture.token.log.line(with: "pin-wrong request \(transaction)", "1 of 3 attempts left")

        try await fixture.putBack(image)
        try await fixture.token.log.line(with: "opened request \(transaction)")
        let counts = try #require(try await fixture.token.status().pin())
        #expect(counts == .init(account: "alice", previousFailureCount: 2, remainingFailureCount: 1))
        try await fixture.token.type("24603")
        #expect(try await fixture.settled(transaction).contains("(9003)"))
        #expect(try await fixture.token.accounts().isEmpty)

        // The account itself is not restored either.
        try await fixture.putBack(image)
        try await fixture.token.log.line(with: "wiped")
        #expect(try await fixture.token.accounts().isEmpty)
        #expect(try await fixture.server.account() == nil)
      }
    }

    @Test("An image from before a PIN change opens nothing") func imageFromBeforePINChangeOpensNothing() async throws {
      try await withPINScene { fixture in
        let old = try await fixture.saveImage("old")
        try await fixture.changePIN(from: "13589", to: "80261")
        let new = try await fixture.saveImage("new")

        try await fixture.putBack(old)
        let transaction = try await fixture.askForPIN()
        for (pin, failures) in [("13589", 1), ("80261", 2)] {
          try await fixture.token.type(pin)
          try await fixture.token.log.line(
            with: "pin-wrong request \(transaction)", "\(3 - failures) of 3 attempts left")
          #expect(try await fixture.server.pinFailures() == failures)
        }
        try await fixture.portal.cancel(transaction)
        _ = try await fixture.settled(transaction)

        try await fixture.putBack(new)
        try await fixture.expectApproval(typing: "80261")
      }
    }

    @Test("Two tokens of one user count each for itself") func twoTokensOfOneUserCountEachForItself() async throws {
      try await withPINScene { fixture in
        let folder = fixture.folder
        let token = TestToken(state: folder.file("second"), board: folder.file("board.toml"))
        defer { token.end() }
        try await token.start()
        let uri = try await fixture.server.activation(for: "alice")
        try await token.enroll(uri, name: "alice", choosing: "97502").succeeded()
        try await token.log.line(with: "] connected to")
        let device = try #require(try await fixture.portal.devices().map(\.id).first { $0 != fixture.device })
        let second = EndToEndFixture(
          folder: folder, server: fixture.server, token: token, portal: fixture.portal, device: device, account: "alice"
        )

        let requests = (try await fixture.askForPIN(), try await second.askForPIN())
        async let mine = fixture.token.type(EndToEndFixture.wrongPIN)
        async let other = token.type(EndToEndFixture.wrongPIN)
        _ = try await (mine, other)
        for (fixture, request) in [(fixture, requests.0), (second, requests.1)] {
          try await fixture.token.log.line(with: "pin-wrong request \(request)", "2 of 3 attempts left")
        }
        try await fixture.token.type(EndToEndFixture.wrongPIN)
        // The PIN of one token is a wrong PIN on the other.
        try await token.type("97502")
        #expect(try await second.settled(requests.1).hasPrefix("approved, receipt "))
        try await fixture.token.log.line(with: "pin-wrong request \(requests.0)", "1 of 3 attempts left")
        #expect(try await fixture.server.pinFailures(on: fixture.device) == 2)
        #expect(try await fixture.server.pinFailures(on: second.device) == 0)
        try await fixture.token.type("13589")
        #expect(try await fixture.settled(requests.0).hasPrefix("approved, receipt "))
        #expect(try await fixture.server.pinFailures(on: fixture.device) == 0)
      }
    }
  }
}
