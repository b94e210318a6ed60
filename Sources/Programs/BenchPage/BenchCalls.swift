// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import JSONValues

extension Bench {
  /// What the page can do, by the path of the call. Each call is about one token.
  nonisolated var calls: PageServer.Calls {
    let calls: [String: @Sendable (BenchToken, JSONValue) async throws -> JSONValue] = [
      "portal/start": { token, body in
        try await token.ask(PortalOrder(body, types: await token.orderTypes), by: "portal")
      },
      "portal/cancel": { try await $0.cancelRequest($1.member("transaction")) },
      "button/press": { try await self.press($0, $1) },
      "button/beat": { .object(["down": .bool(await $0.button.beat(try $1.number("press")))]) },
      "button/release": { try await self.release($0, $1) },
      "button/cancel": {
        await $0.button.cancel(try $1.number("press"))
        return .object([:])
      },
      "keypad": { try await self.type($0, $1) },
      "reader": { try await self.present(ReaderAct($1), to: $0) },
      "chip": {
        try await $0.program.call(.simulate(.chip(isConnected: try $1.flag("connected"))))
      },
      "fault": { try await self.fault($0, $1.member("fault")) },
      "account": { try await self.account($0, $1) },
      "account/uri": { token, _ in try await self.enrollmentURI(of: token.user) },
      "account/picture": { _, body in try await self.read(QRPicture(base64: body.member("png"))) },
      "account/authenticators": { token, _ in try await token.authenticators() },
    ]
    return calls.mapValues { call in { body in try await call(try self.token(of: body), body) } }
  }

  /// The token that a call is about; the first one if it names none.
  private nonisolated func token(of body: JSONValue) throws -> BenchToken {
    let index = body["token"] == nil ? 0 : try body.number("token")
    guard tokens.indices.contains(index) else { throw BenchError("there is no such token") }
    return tokens[index]
  }

  private func press(_ token: BenchToken, _ body: JSONValue) async throws -> JSONValue {
    guard let name = SimulatedButtonName(rawValue: try body.member("button")) else {
      throw BenchError("there is no such button")
    }
    let (number, ignored) = try await token.button.begin(name)
    return .object(["press": .integer(Int64(number)), "ignored": ignored.map { .text($0) } ?? .null])
  }

  private func release(_ token: BenchToken, _ body: JSONValue) async throws -> JSONValue {
    let held = try body.number("held_ms")
    guard (0...60_000).contains(held) else { throw BenchError("held_ms is 0 to 60000") }
    let ending = try await token.button.release(try body.number("press"), after: held)
    return .object(["ending": .text(ending.rawValue)])
  }

  private func type(_ token: BenchToken, _ body: JSONValue) async throws -> JSONValue {
    let keys = try body.member("keys", "a list of 1 to 16 texts") { value -> [String]? in
      let texts = value.list?.compactMap(\.text) ?? []
      return texts.count == value.list?.count && (1...16).contains(texts.count) ? texts : nil
    }
    let answer = try await token.program.call(.simulate(.keys(keys)))
    // Not which: they can be a PIN.
    if !keys.contains(where: { $0.hasPrefix("unplug") || $0.hasPrefix("plug") }) {
      await token.publish(.user, .object(["keys": .integer(Int64(keys.count))]))
    }
    return answer
  }

  private func present(_ act: ReaderAct, to token: BenchToken) async throws -> JSONValue {
    let answer = try await token.program.call(.simulate(.authenticator(act.answer)))
    await token.publish(.user, .object(["reader": .text(act.words), "ignored": answer["ignored"] ?? .null]))
    return answer
  }

  private func fault(_ token: BenchToken, _ name: String) async throws -> JSONValue {
    switch name {
    case "server-away": try await serverAway(true)
    case "server-back": try await serverAway(false)
    case "power-loss":
      try await token.inTurn(name) {
        await $0.losePower()
        try await $0.start()
      }
    case "network-away": try await token.inTurn(name) { await $0.loseNetwork() }
    case "network-back": try await token.inTurn(name) { try await $0.startNetwork() }
    case "clock-wrong", "clock-right":
      guard token.program.hasClock else { throw BenchError("this token has no other clock") }
      try await token.inTurn(name) {
        await $0.losePower()
        await $0.setClock(name == "clock-wrong" ? .in1970 : .none)
        try await $0.start()
      }
    case "attacker-login":
      let order = try PortalOrder(
        .object(["type": .text("login"), "message": .text("Log in from an unknown computer?")]))
      return try await token.ask(order, by: "attacker")
    default: throw BenchError("there is no such fault")
    }
    return .object([:])
  }

  private func account(_ token: BenchToken, _ body: JSONValue) async throws -> JSONValue {
    let command = try body.member("command")
    switch command {
    case "enroll":
      let uri = try body.member("uri")
      guard (1...4096).contains(uri.utf8.count) else { throw BenchError("a URI has 1 to 4096 bytes") }
      try await token.begin(command, .enroll(EnrollmentOptions(uri: uri)))
    case "pin-change": try await token.begin(command, .changePIN(account: try await token.account()))
    case "forget": try await token.begin(command, .forget(account: try await token.account()))
    case "register", "deregister", "prefer":
      let identifier = try body.member("authenticator")
      guard (1...64).contains(identifier.utf8.count) else { throw BenchError("an identifier has 1 to 64 bytes") }
      let account = try await token.account()
      let request: ControlRequest =
        switch command {
        case "register": .registerAuthenticator(account: account, identifier: identifier)
        case "deregister": .deregisterAuthenticator(account: account, identifier: identifier)
        default: .preferAuthenticator(account: account, identifier: identifier)
        }
      try await token.begin(command, request)
    default: throw BenchError("there is no such command")
    }
    return .object([:])
  }
}

extension JSONValue {
  fileprivate func member(_ name: String) throws -> String { try member(name, "a text", \.text) }

  fileprivate func number(_ name: String) throws -> Int {
    try member(name, "a whole number") { $0.integer.flatMap { Int(exactly: $0) } }
  }

  fileprivate func flag(_ name: String) throws -> Bool { try member(name, "true or false", \.bool) }

  /// - Parameter form: what the member must be, which it is if `read` returns a value.
  fileprivate func member<Value>(_ name: String, _ form: String, _ read: (JSONValue) -> Value?) throws -> Value {
    guard let found = self[name] else { throw BenchError("\"\(name)\" is missing") }
    guard let value = read(found) else { throw BenchError("\"\(name)\" is not \(form)") }
    return value
  }
}
