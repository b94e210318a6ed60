// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// Hints over a real mosquitto, with TLS and a password: in addition to the event stream, or instead of it.
  @Suite struct Brokers {
    private struct BrokerScene {
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
      _ body: (BrokerScene) async throws -> Void
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
        "[mqtt]\n\(address)\nuser = \"\(TestBroker.user)\"\npassword_file = \"\(passwordFile)\"\n\(settings)\n",
        to: "config.toml")
      let board = try folder.write(QuickBoard.withButton, to: "board.toml")
      let token = TestToken(state: folder.file("token"), board: board, config: config)
      defer { token.end() }
      try await token.enrol(try await server.activation(for: "alice")).succeeded()
      try await token.start()
      let portal = server.portal
      let device = try #require(try await portal.devices().first).id
      try await body(BrokerScene(broker: broker, server: server, token: token, portal: portal, device: device))
      #expect(try await token.provesItsLog())
    }

    @Test func inPlaceOfTheStreamAHintBringsTheRequestAndSaysNothing() async throws {
      try await withBroker(token: "replaces_event_stream = true") { scene in
        try await scene.token.log.line(with: "] connected to")
        #expect(try scene.token.log.count(of: "listening at the broker") == 1)
        let listener = try await scene.broker.follow("approval-token/#")
        try await scene.approve()
        let hint = try await listener.output.line(with: "\"request\"")
        #expect(hint == #"{"kind":"request"}"#)
        #expect(listener.output.count(of: "{") == listener.output.count(of: #"{"kind":"request"#))
      }
    }

    @Test func withoutTheBrokerTheListIsReadAllTheSame() async throws {
      try await withBroker(token: "replaces_event_stream = true") { scene in
        try await scene.token.log.line(with: "] connected to")
        let mark = try scene.token.log.mark
        try await scene.broker.stop()
        try await scene.token.log.line(with: "the broker cannot be reached", from: mark)
        try await scene.approve()
        try await scene.broker.start()
        try await scene.token.log.line(with: "listening at the broker", from: mark)
        try await scene.approve()
      }
    }

    @Test func besideTheStreamNeitherNeedsTheOther() async throws {
      try await withBroker { scene in
        try await scene.token.log.line(with: "] connected to")
        try await scene.token.log.line(with: "listening at the broker")
        try await scene.approve()
        let mark = try scene.token.log.mark
        try await scene.broker.stop()
        try await scene.token.log.line(with: "the broker cannot be reached", from: mark)
        try await scene.approve()
        #expect(try scene.token.log.lines.dropFirst(mark).count { $0.contains("not connected to") } == 0)
      }
    }

    @Test func aRestartedServerKnowsWhoListensWhere() async throws {
      try await withBroker(token: "replaces_event_stream = true") { scene in
        try await scene.token.log.line(with: "listening at the broker")
        try await scene.server.kill9()
        try await scene.server.start()
        try await scene.server.log.line(with: "connected to the broker")
        try await scene.approve()
      }
    }

    @Test func aBrokerThatRefusesUsIsSaidToDoSo() async throws {
      try await withBroker(password: "wrong") { scene in
        try await scene.token.log.line(with: "] connected to")
        try await scene.token.log.line(with: "the broker refused the connection: wrong user or password")
        try await scene.approve()
      }
    }

    @Test func aServerWithoutABrokerIsHeardByItsStream() async throws {
      try await withBroker(serverHasBroker: false, token: "replaces_event_stream = true") { scene in
        try await scene.token.log.line(with: "] connected to")
        try await scene.approve()
        #expect(try scene.token.log.count(of: "broker") == 0)
      }
    }

    @Test(arguments: [
      ("broker = \"mqtts://x\"", "broker"), ("", "broker"), ("broker = \"x\"\nuser = \"a\"", "password_file"),
      ("broker = \"x\"\nversion = \"4\"", "version"), ("broker = \"x\"\npassword = \"a\"", "unknown key"),
      ("broker = \"x\"\nuser = \"a\"\npassword_file = \"/nowhere\"", "/nowhere"),
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
