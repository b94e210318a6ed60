// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// Hints over a real mosquitto, with TLS and a password: in addition to the event stream, or instead of it.
  @Suite struct Brokers {
    private struct BrokerFixture {
      let broker: TestBroker
      let server: TestServer
      let token: TestToken
      let portal: Portal
      let device: String

      func approve() async throws {
        let transaction = try await portal.ask(on: device)
        try await token.answer(transaction, with: .hold)
        #expect(try await portal.finalResult(of: transaction).isAuthenticated)
      }
    }

    /// - Parameters:
    ///   - server: the broker settings of the server; none if nil.
    ///   - token: additional lines of the token's `[mqtt]`.
    private func withBroker(
      serverHasBroker: Bool = true, token settings: String = "", password: String = TestBroker.password,
      _ body: (BrokerFixture) async throws -> Void
    ) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let broker = try await TestBroker()
      let address = "broker = \"localhost:\(broker.port)\"\nauthorities = \"\(broker.authority)\""
      let forServer = "[mqtt]\n\(address)\nusername = \"\(TestBroker.user)\"\npassword = \"\(TestBroker.password)\"\n"
      let server = try await TestServer(in: folder, types: serverHasBroker ? forServer : "")
      defer { server.end() }
      try await server.start()
      if serverHasBroker { try await server.log.line(with: "connected to the broker") }
      let passwordFile = try folder.write(password + "\n", to: "broker-password")
      let config = try folder.write(
        "[mqtt]\n\(address)\nusername = \"\(TestBroker.user)\"\npassword_file = \"\(passwordFile)\"\n\(settings)\n",
        to: "config.toml")
      let board = try folder.write(QuickBoard.withButton, to: "board.toml")
      let token = TestToken(state: folder.file("token"), board: board, config: config)
      defer { token.end() }
      try await token.enroll(try await server.activation(for: "alice")).succeeded()
      try await token.start()
      let portal = server.portal
      let device = try #require(try await portal.devices().first).id
      try await body(BrokerFixture(broker: broker, server: server, token: token, portal: portal, device: device))
      #expect(try await token.provesItsLog())
    }

    @Test("In place of the stream a hint brings the request and says nothing")
    func inPlaceOfTheStreamAHintBringsTheRequestAndSaysNothing() async throws {
      try await withBroker(token: "replaces_event_stream = true") { fixture in
        try await fixture.token.log.line(with: "] connected to")
        #expect(try fixture.token.log.count(of: "listening at the broker") == 1)
        let listener = try await fixture.broker.follow("approval-token/#")
        try await fixture.approve()
        let hint = try await listener.output.line(with: "\"request\"")
        #expect(hint == #"{"kind":"request"}"#)
        #expect(listener.output.count(of: "{") == listener.output.count(of: #"{"kind":"request"#))
      }
    }

    @Test("Without the broker the list is read all the same") func withoutTheBrokerTheListIsReadAllTheSame()
      async throws
    {
      try await withBroker(token: "replaces_event_stream = true") { fixture in
        try await fixture.token.log.line(with: "] connected to")
        let mark = try fixture.token.log.mark
        try await fixture.broker.stop()
        try await fixture.token.log.line(with: "the broker cannot be reached", from: mark)
        try await fixture.approve()
        try await fixture.broker.start()
        // The pause between attempts grows to a minute.
        try await fixture.token.log.line(with: "listening at the broker", from: mark, within: .seconds(150))
        try await fixture.approve()
      }
    }

    @Test("Beside the stream neither needs the other") func besideTheStreamNeitherNeedsTheOther() async throws {
      try await withBroker { fixture in
        try await fixture.token.log.line(with: "] connected to")
        try await fixture.token.log.line(with: "listening at the broker")
        try await fixture.approve()
        let mark = try fixture.token.log.mark
        try await fixture.broker.stop()
        try await fixture.token.log.line(with: "the broker cannot be reached", from: mark)
        try await fixture.approve()
        #expect(try fixture.token.log.lines.dropFirst(mark).count { $0.contains("not connected to") } == 0)
      }
    }

    @Test("A restarted server knows who listens where") func aRestartedServerKnowsWhoListensWhere() async throws {
      try await withBroker(token: "replaces_event_stream = true") { fixture in
        try await fixture.token.log.line(with: "listening at the broker")
        try await fixture.server.kill9()
        try await fixture.server.start()
        try await fixture.server.log.line(with: "connected to the broker")
        try await fixture.approve()
      }
    }

    @Test("A token that stays at the broker gets its hints there after a rotation of the pepper")
    func rotatedPepper() async throws {
      try await withBroker(token: "replaces_event_stream = true") { fixture in
        try await fixture.token.log.line(with: "listening at the broker")
        try await fixture.server.stop()
        try await fixture.server.command("pepper", "rotate")
        try await fixture.server.start()
        try await fixture.server.log.line(with: "connected to the broker")
        try await fixture.approve()
      }
    }

    @Test("A broker that refuses us is said to do so") func aBrokerThatRefusesUsIsSaidToDoSo() async throws {
      try await withBroker(password: "wrong") { fixture in
        try await fixture.token.log.line(with: "] connected to")
        try await fixture.token.log.line(with: "the broker refused the connection: wrong user or password")
        try await fixture.approve()
      }
    }

    @Test("A server without a broker is heard by its stream") func aServerWithoutABrokerIsHeardByItsStream()
      async throws
    {
      try await withBroker(serverHasBroker: false, token: "replaces_event_stream = true") { fixture in
        try await fixture.token.log.line(with: "] connected to")
        try await fixture.approve()
        #expect(try fixture.token.log.count(of: "broker") == 0)
      }
    }

    @Test(
      "A configuration that cannot be is refused",
      arguments: [
        ("broker = \"mqtts://x\"", "broker"), ("", "broker"), ("broker = \"x\"\nusername = \"a\"", "password_file"),
        ("broker = \"x\"\nversion = \"4\"", "version"), ("broker = \"x\"\npassword = \"a\"", "unknown key"),
        ("broker = \"x\"\nusername = \"a\"\npassword_file = \"/nowhere\"", "/nowhere"),
      ])
    func aConfigurationThatCannotBeIsRefused(settings: String, part: String) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let config = try folder.write("[mqtt]\n\(settings)\n", to: "config.toml")
      let outcome = try await run(Program.token, ["serve", "--state", folder.file("token"), "--config", config])
      #expect(outcome.exit == .code(65) && outcome.errors.contains(part), "\(outcome.errors)")
    }
  }
}
