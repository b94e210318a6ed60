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
    case status, pending, reload, enroll, push, forget, authenticators
    case registerAuthenticator = "register-authenticator"
    case deregisterAuthenticator = "deregister-authenticator"
    case preferAuthenticator = "prefer-authenticator"
    case logIn = "log-in"
    case logOut = "log-out"
    case changePIN = "change-pin"
    case oneTimePassword = "one-time-password"
    case hold, double, keys, led, watch, show, call, allow, disallow
    case notMe = "not-me"
    case followLED = "follow-led"
  }
}

extension ClosedRange<Int64> {
  /// Messages of the control socket contain no other numbers.
  static var integers: Self { Int64.min...Int64.max }
}

extension ControlRequest: Codable {
  private enum Members: String, CodingKey {
    case version, request, message, account, transaction, milliseconds, keys, origin, authenticator
  }

  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Members.self)
    let account = try members.decodeIfPresent(String.self, forKey: .account)
    self =
      switch try members.decode(Name.self, forKey: .request) {
      case .status: .status
      case .pending: .pending
      case .reload: .reload
      case .enroll: .enroll(try EnrollmentOptions(from: decoder))
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
      case .hold: .simulate(.hold(milliseconds: try members.decode(Int64.self, forKey: .milliseconds)))
      case .double: .simulate(.doublePress)
      case .notMe: .simulate(.notMe)
      case .keys: .simulate(.keys(try members.decode([String].self, forKey: .keys)))
      case .led: .led
      case .followLED: .followLED
      case .watch: .watch
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
    case .forget(let account): try members.encode(account, forKey: .account)
    case .show(let transaction): try members.encode(transaction, forKey: .transaction)
    case .call(let call): try call.encode(to: encoder)
    case .allow(let account, let origin), .disallow(let account, let origin):
      try members.encode(account, forKey: .account)
      try members.encode(origin, forKey: .origin)
    case .simulate(.hold(let milliseconds)): try members.encode(milliseconds, forKey: .milliseconds)
    case .simulate(.keys(let keys)): try members.encode(keys, forKey: .keys)
    case .status, .pending, .reload, .logOut, .led, .followLED, .watch, .simulate(.doublePress), .simulate(.notMe):
      break
    }
  }

  private var name: Name {
    switch self {
    case .status: .status
    case .pending: .pending
    case .reload: .reload
    case .enroll: .enroll
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
    case .simulate(.hold): .hold
    case .simulate(.doublePress): .double
    case .simulate(.notMe): .notMe
    case .simulate(.keys): .keys
    case .led: .led
    case .followLED: .followLED
    case .watch: .watch
    case .show: .show
    case .call: .call
    case .allow: .allow
    case .disallow: .disallow
    }
  }
}
