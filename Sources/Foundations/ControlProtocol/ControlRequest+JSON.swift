// SPDX-License-Identifier: Apache-2.0
import JSONValues

// A request is one JSON object with the name of the request, the version of the protocol, and the members that the
// request has.

extension ControlRequest {
  /// Changes when a release gives a request another meaning. A request without it is one of version 1.
  package static let version = 1

  /// - Throws: `.refused` for a request that this version does not know, `.badData` for other malformed requests.
  package init(line: [UInt8]) throws(CommandError) {
    do {
      let head = try JSONMessage.decode(Head.self, from: line, numbers: .integers)
      if let mismatch = head.mismatch { throw mismatch }
      self = try JSONMessage.decode(ControlRequest.self, from: line, numbers: .integers)
    } catch let error as CommandError { throw error } catch {
      throw CommandError(.badData, "not a control request: \((error as? JSONMessage.FormError)?.why ?? "\(error)")")
    }
  }

  package var line: [UInt8] { JSONMessage.encode(self) }

  private struct Head: Decodable {
    var version: Int64?
    var request: String

    var mismatch: CommandError? {
      let remedy = "the command and the running service are of different releases; restart the service"
      let version = version ?? 1
      if version != ControlRequest.version {
        return CommandError(
          .refused,
          "the command uses version \(version) of the control protocol, the service version \(ControlRequest.version): "
            + remedy)
      }
      guard Name(rawValue: request) == nil else { return nil }
      return CommandError(.refused, "the service does not know the request \"\(request.prefix(64))\": " + remedy)
    }
  }

  fileprivate enum Name: String, Codable {
    case status, pending, reload, enroll, disenroll, push, forget, authenticators
    case registerAuthenticator = "register-authenticator"
    case deregisterAuthenticator = "deregister-authenticator"
    case preferAuthenticator = "prefer-authenticator"
    case logIn = "log-in"
    case enrollAgain = "enroll-again"
    case logOut = "log-out"
    case changePIN = "change-pin"
    case oneTimePassword = "one-time-password"
    case hold, double, keys, chip, led, watch, events, show, call, allow, disallow
    case notMe = "not-me"
    case selfTest = "self-test"
    case followLED = "follow-led"
    case followBoard = "follow-board"
    case pressButton = "press-button"
    case releaseButton = "release-button"
    case factoryReset = "factory-reset"
    case simulateAuthenticator = "simulate-authenticator"
  }
}

extension ClosedRange<Int64> {
  /// Messages of the control socket contain no other numbers.
  static var integers: Self { Int64.min...Int64.max }
}

extension ControlRequest: Codable {
  private enum Members: String, CodingKey {
    case version, request, message, account, transaction, milliseconds, keys, origin, authenticator, follow
    case pushOnly = "push-only"
    case data, cancel, fallback, retry, touch, badge, finger, unplugged, button, connected
  }

  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Members.self)
    let account = try members.decodeIfPresent(String.self, forKey: .account)
    self =
      switch try members.decode(Name.self, forKey: .request) {
      case .status: .status
      case .pending: .pending
      case .selfTest: .selfTest
      case .reload: .reload
      case .enroll: .enroll(try EnrollmentOptions(from: decoder))
      case .enrollAgain: .enrollAgain(account: try members.decode(String.self, forKey: .account))
      case .disenroll:
        .disenroll(
          account: try members.decode(String.self, forKey: .account),
          pushOnly: try members.decode(Bool.self, forKey: .pushOnly))
      case .push: .push(message: try members.decode(String.self, forKey: .message))
      case .logIn:
        .logIn(account: account, authenticator: try members.decodeIfPresent(String.self, forKey: .authenticator))
      case .authenticators: .authenticators(account: account)
      case .registerAuthenticator: try Self.about(members, Self.registerAuthenticator)
      case .deregisterAuthenticator: try Self.about(members, Self.deregisterAuthenticator)
      case .preferAuthenticator: try Self.about(members, Self.preferAuthenticator)
      case .logOut: .logOut
      case .changePIN: .changePIN(account: account)
      case .oneTimePassword: .oneTimePassword(account: account)
      case .forget: .forget(account: try members.decode(String.self, forKey: .account))
      case .factoryReset: .factoryReset
      case .hold: .simulate(.hold(milliseconds: try members.decode(Int64.self, forKey: .milliseconds)))
      case .double: .simulate(.doublePress)
      case .notMe: .simulate(.notMe)
      case .keys: .simulate(.keys(try members.decode([String].self, forKey: .keys)))
      case .simulateAuthenticator: .simulate(.authenticator(try Self.answer(members)))
      case .led: .led
      case .followLED: .followLED
      case .followBoard: .followBoard
      case .pressButton: .pressButton(try members.decode(SimulatedButtonName.self, forKey: .button))
      case .releaseButton:
        .releaseButton(heldMilliseconds: try members.decode(Int64.self, forKey: .milliseconds))
      case .chip: .simulate(.chip(isConnected: try members.decode(Bool.self, forKey: .connected)))
      case .watch: .watch
      case .events: .events(follow: try members.decode(Bool.self, forKey: .follow))
      case .show: .show(transaction: try members.decode(String.self, forKey: .transaction))
      case .call: .call(try ResourceCall(from: decoder))
      case .allow:
        .allow(
          account: try members.decode(String.self, forKey: .account),
          origin: try members.decode(String.self, forKey: .origin))
      case .disallow:
        .disallow(
          account: try members.decode(String.self, forKey: .account),
          origin: try members.decode(String.self, forKey: .origin))
      }
  }

  private static func about(
    _ members: KeyedDecodingContainer<Members>, _ make: (_ account: String, _ identifier: String) -> ControlRequest
  ) throws -> ControlRequest {
    make(
      try members.decode(String.self, forKey: .account), try members.decode(String.self, forKey: .authenticator))
  }

  private enum Reader: String, Codable { case key, badge }

  private static func encode(
    _ answer: SimulatedAnswer, into members: inout KeyedEncodingContainer<Members>
  ) throws {
    switch answer {
    case .data(let data): try members.encode(data, forKey: .data)
    case .cancel(let reason): try members.encode(reason, forKey: .cancel)
    case .retry(let reason): try members.encode(reason, forKey: .retry)
    case .fallback: try members.encode(true, forKey: .fallback)
    case .touch: try members.encode(true, forKey: .touch)
    case .badge(let name): try members.encode(name, forKey: .badge)
    case .finger(let name): try members.encode(name, forKey: .finger)
    case .noKey: try members.encode(Reader.key, forKey: .unplugged)
    case .noBadge: try members.encode(Reader.badge, forKey: .unplugged)
    }
  }

  private static func answer(_ members: KeyedDecodingContainer<Members>) throws -> SimulatedAnswer {
    if let data = try members.decodeIfPresent(String.self, forKey: .data) { return .data(data) }
    if let reason = try members.decodeIfPresent(String.self, forKey: .cancel) { return .cancel(reason: reason) }
    if let reason = try members.decodeIfPresent(String.self, forKey: .retry) { return .retry(reason: reason) }
    if let name = try members.decodeIfPresent(String.self, forKey: .badge) { return .badge(name) }
    if let name = try members.decodeIfPresent(String.self, forKey: .finger) { return .finger(name) }
    if let reader = try members.decodeIfPresent(Reader.self, forKey: .unplugged) {
      return reader == .key ? .noKey : .noBadge
    }
    if try members.decodeIfPresent(Bool.self, forKey: .touch) != nil { return .touch }
    _ = try members.decode(Bool.self, forKey: .fallback)
    return .fallback
  }

  package func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: Members.self)
    try members.encode(Self.version, forKey: .version)
    try members.encode(name, forKey: .request)
    switch self {
    case .enroll(let options): try options.encode(to: encoder)
    case .push(let message): try members.encode(message, forKey: .message)
    case .logIn(let account, let authenticator):
      try members.encodeIfPresent(account, forKey: .account)
      try members.encodeIfPresent(authenticator, forKey: .authenticator)
    case .registerAuthenticator(let account, let id), .deregisterAuthenticator(let account, let id),
      .preferAuthenticator(let account, let id):
      try members.encode(account, forKey: .account)
      try members.encode(id, forKey: .authenticator)
    case .authenticators(let account), .changePIN(let account), .oneTimePassword(let account):
      try members.encodeIfPresent(account, forKey: .account)
    case .forget(let account), .enrollAgain(let account): try members.encode(account, forKey: .account)
    case .disenroll(let account, let pushOnly):
      try members.encode(account, forKey: .account)
      try members.encode(pushOnly, forKey: .pushOnly)
    case .events(let follow): try members.encode(follow, forKey: .follow)
    case .show(let transaction): try members.encode(transaction, forKey: .transaction)
    case .call(let call): try call.encode(to: encoder)
    case .allow(let account, let origin), .disallow(let account, let origin):
      try members.encode(account, forKey: .account)
      try members.encode(origin, forKey: .origin)
    case .simulate(.hold(let milliseconds)), .releaseButton(let milliseconds):
      try members.encode(milliseconds, forKey: .milliseconds)
    case .simulate(.keys(let keys)): try members.encode(keys, forKey: .keys)
    case .simulate(.authenticator(let answer)): try Self.encode(answer, into: &members)
    case .simulate(.chip(let isConnected)): try members.encode(isConnected, forKey: .connected)
    case .pressButton(let button): try members.encode(button, forKey: .button)
    case .status, .pending, .selfTest, .reload, .logOut, .led, .followLED, .watch, .factoryReset,
      .simulate(.doublePress),
      .simulate(.notMe), .followBoard:
      break
    }
  }

  private var name: Name {
    switch self {
    case .status: .status
    case .pending: .pending
    case .selfTest: .selfTest
    case .reload: .reload
    case .enroll: .enroll
    case .enrollAgain: .enrollAgain
    case .disenroll: .disenroll
    case .push: .push
    case .logIn: .logIn
    case .authenticators: .authenticators
    case .registerAuthenticator: .registerAuthenticator
    case .deregisterAuthenticator: .deregisterAuthenticator
    case .preferAuthenticator: .preferAuthenticator
    case .logOut: .logOut
    case .changePIN: .changePIN
    case .oneTimePassword: .oneTimePassword
    case .forget: .forget
    case .factoryReset: .factoryReset
    case .simulate(.hold): .hold
    case .simulate(.doublePress): .double
    case .simulate(.notMe): .notMe
    case .simulate(.keys): .keys
    case .simulate(.authenticator): .simulateAuthenticator
    case .led: .led
    case .followLED: .followLED
    case .followBoard: .followBoard
    case .pressButton: .pressButton
    case .releaseButton: .releaseButton
    case .simulate(.chip): .chip
    case .watch: .watch
    case .events: .events
    case .show: .show
    case .call: .call
    case .allow: .allow
    case .disallow: .disallow
    }
  }
}
