// SPDX-License-Identifier: Apache-2.0

/// The authenticators of one account, the PIN first.
package struct AuthenticatorsResponse: Codable, Sendable, Equatable {
  package struct Entry: Codable, Sendable, Equatable {
    package var identifier: String
    /// For display.
    package var name: String
    /// `pin`, `biometric` or `custom`.
    package var kind: String
    package var isRegistered: Bool
    package var isPreferred: Bool
    /// Whether the server offers it and this token can use it now.
    package var isSupported: Bool

    package init(
      identifier: String, name: String, kind: String, isRegistered: Bool, isPreferred: Bool, isSupported: Bool
    ) {
      self.identifier = identifier
      self.name = name
      self.kind = kind
      self.isRegistered = isRegistered
      self.isPreferred = isPreferred
      self.isSupported = isSupported
    }

    enum CodingKeys: String, CodingKey {
      case identifier, name, kind
      case isRegistered = "registered"
      case isPreferred = "preferred"
      case isSupported = "supported"
    }
  }

  package var account: String
  package var authenticators: [Entry]
  /// After a deregistration: whether the token server was notified.
  package var serverNotified: Bool?
  /// 9028 if it was not; otherwise nil.
  package var number: Int?
  /// After a registration: the result of the server's script.
  package var info: ScriptInfo?

  package init(
    account: String, authenticators: [Entry], serverNotified: Bool? = nil, info: ScriptInfo? = nil
  ) {
    self.account = account
    self.authenticators = authenticators
    self.serverNotified = serverNotified
    self.info = info
    number = serverNotified == false ? Self.deregistrationUnconfirmed : nil
  }

  /// Number of the error catalog for a deregistration of which the server was not notified.
  package static let deregistrationUnconfirmed = 9028

  enum CodingKeys: String, CodingKey {
    case account, authenticators, number, info
    case serverNotified = "server_notified"
  }
}
