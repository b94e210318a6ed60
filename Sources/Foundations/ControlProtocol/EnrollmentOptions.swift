// SPDX-License-Identifier: Apache-2.0

package struct EnrollmentOptions: Equatable, Sendable {
  /// The enrollment URI; empty with `server`.
  package var uri: String
  /// https://HOST[:PORT] of a token server whose activation code is typed at the panel, instead of a URI.
  package var server: String?
  /// The name of the new account.
  package var name: String?
  /// A PEM file.
  package var authorities: String?
  /// SHA-256 of the server's public key, in Base64; at most `mostPins`.
  package var pins: [String] = []
  /// Whether the pins of earlier enrollments at the server are removed.
  package var dropsPins = false
  /// Whether the user chooses a PIN that protects the secret.
  package var asksPIN = false
  /// For PingAM: the topic where AM shall deliver messages.
  package var mailbox: String?

  /// The origins to which the access token of the logged-in user may be sent; at most `mostOrigins`.
  package var allowedOrigins: [String] = []
  /// How long a network is waited for, in seconds; at most `longestNetworkWait`.
  package var networkWait = 0

  package static let mostOrigins = 16
  /// The maximum number of pins, and their length in bytes: Base64 of 32 bytes has 44, some tools write a prefix.
  package static let mostPins = 16
  package static let longestPin = 256
  package static let longestNetworkWait = 3_600

  package init(uri: String) { self.uri = uri }
}

extension EnrollmentOptions: Codable {
  private enum CodingKeys: String, CodingKey {
    case uri, server, authorities, pins, dropsPins, asksPIN, mailbox, allowedOrigins, networkWait
    case name = "account"
  }

  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    self.init(uri: try members.decode(String.self, forKey: .uri))
    server = try members.decodeIfPresent(String.self, forKey: .server)
    name = try members.decodeIfPresent(String.self, forKey: .name)
    authorities = try members.decodeIfPresent(String.self, forKey: .authorities)
    pins = try members.decodeIfPresent([String].self, forKey: .pins) ?? []
    guard pins.count <= Self.mostPins, pins.allSatisfy({ $0.utf8.count <= Self.longestPin }) else {
      throw DecodingError.dataCorruptedError(forKey: .pins, in: members, debugDescription: "too many or too long")
    }
    dropsPins = try members.decodeIfPresent(Bool.self, forKey: .dropsPins) ?? false
    asksPIN = try members.decodeIfPresent(Bool.self, forKey: .asksPIN) ?? false
    mailbox = try members.decodeIfPresent(String.self, forKey: .mailbox)
    allowedOrigins = try members.decodeIfPresent([String].self, forKey: .allowedOrigins) ?? []
    guard allowedOrigins.count <= Self.mostOrigins else {
      throw DecodingError.dataCorruptedError(forKey: .allowedOrigins, in: members, debugDescription: "too many")
    }
    networkWait = try members.decodeIfPresent(Int.self, forKey: .networkWait) ?? 0
    guard (0...Self.longestNetworkWait).contains(networkWait) else {
      throw DecodingError.dataCorruptedError(forKey: .networkWait, in: members, debugDescription: "out of range")
    }
  }
}
