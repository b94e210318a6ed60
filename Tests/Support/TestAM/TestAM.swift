// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import Secrets
import Synchronization

/// A stand-in for one realm of PingAM. It performs the checks of AM's published source in the same order, including its
/// quirks, and does not use the adapter's code.
package final class TestAM: Sendable {
  /// AM versions that a client can distinguish.
  package enum Version: String, Sendable, CaseIterable, Comparable {
    case am72 = "7.2"
    case am73 = "7.3"
    case am74 = "7.4"
    case am800 = "8.0.0"
    case am801 = "8.0.1"
    case am802 = "8.0.2"

    package static func < (one: Version, other: Version) -> Bool { one.rawValue < other.rawValue }
  }

  /// One device of one user, as the registration node stores it.
  package struct Profile: Sendable, Equatable {
    package var user: String
    /// Nil if the device did not send it, which AM accepts.
    package var mechanismUID: String?
    package var deviceID: String
    package var communicationType: String
    package var deviceType: String?
    package var deviceName: String
    var secret: [UInt8]
  }

  /// The record of a message ID in the cluster's token store.
  struct Token: Sendable {
    enum Phase: Sendable, Equatable { case waiting, accepted, denied }

    let user: String
    let secret: [UInt8]
    let expectedAnswer: String
    let createdAt: Int64
    /// In seconds, independent of the nodes' time limits.
    let lifetime: Int64
    let isRegistration: Bool
    /// How long the node waits in seconds: from the QR code for a registration, from its first poll for the verifier.
    let patience: Int64
    /// The cookie by which a load balancer routes to the AM that created the message.
    let cookie: String
    var firstPolledAt: Int64?
    var phase = Phase.waiting
    var answeredAt: Int64?
    var challengeResponse: Int64?
    var device: Profile?

    var expiresAt: Int64 { createdAt + lifetime * 1000 }
  }

  struct State: Sendable {
    var tokens: [String: Token] = [:]
    var profiles: [Profile] = []
    var received: [String] = []
    var strays = 0
    var cookies = 0
    var hasPushService = true
    var providerRefuses = false

    /// A new value for each message.
    mutating func nextCookie() -> String {
      cookies += 1
      return "amlbcookie=\(cookies)"
    }

    func providerTakes(_ device: String) -> Bool { !device.isEmpty && !providerRefuses }
  }

  package let version: Version
  /// The base URL without a trailing slash.
  package let base: String
  package let realm: String
  /// The path in QR codes; AM responds on both paths.
  let namesRealmInFull: Bool
  /// Seconds; AM's `mdDuration`.
  let lifetime: Int64
  /// Seconds.
  let registrationTimeout: Int64
  let now: @Sendable () -> Int64
  let state = Mutex(State())

  /// - Parameters:
  ///   - base: `https://host:port/am`.
  ///   - realm: the realm's name; empty for the root.
  ///   - namesRealmInFull: whether QR codes contain `/realms/root/realms/alpha` rather than `/alpha`.
  ///   - lifetime: how many seconds a message is kept.
  ///   - registrationTimeout: how many seconds the registration node waits.
  ///   - now: milliseconds since 1970.
  package init(
    _ version: Version = .am802, base: String, realm: String, namesRealmInFull: Bool = false,
    lifetime: Int64 = 120, registrationTimeout: Int64 = 60, now: @escaping @Sendable () -> Int64
  ) {
    self.version = version
    self.base = base
    self.realm = realm
    self.namesRealmInFull = namesRealmInFull
    self.lifetime = lifetime
    self.registrationTimeout = registrationTimeout
    self.now = now
  }

  var endpoint: String { endpoint(namingRealmInFull: namesRealmInFull) }

  func endpoint(namingRealmInFull isFull: Bool) -> String {
    let names = realm.split(separator: "/")
    let path = isFull ? "/realms/root" + names.map { "/realms/\($0)" }.joined() : names.map { "/\($0)" }.joined()
    return "\(base)/json\(path)/push/sns/message"
  }

  /// Whether the push service is configured in the realm.
  package func set(hasPushService: Bool) { state.withLock { $0.hasPushService = hasPushService } }

  /// Whether the push provider refuses every device.
  package func set(providerRefuses: Bool) { state.withLock { $0.providerRefuses = providerRefuses } }

  package var profiles: [Profile] { state.withLock { $0.profiles } }

  /// The received JWTs in order, valid or not.
  package var received: [String] { state.withLock { $0.received } }

  /// The number of requests without the cookie of their message or QR code: a load balancer would have routed them to
  /// another AM.
  package var strays: Int { state.withLock { $0.strays } }

  /// The secret that a user's device shares with this AM.
  package func secret(of user: String) -> [UInt8]? {
    state.withLock { state in state.profiles.first { $0.user == user }?.secret }
  }

  static func answer(to challenge: [UInt8], _ secret: [UInt8]) -> String {
    HMACSHA256.authenticate(challenge, key: SecretBytes(copying: secret)).base64
  }

  static func percentEncoded(_ name: String) -> String {
    let open = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$'()*,;&=@:+/?".utf8)
    return name.utf8.map { byte in
      open.contains(byte) ? String(UnicodeScalar(byte)) : "%" + [byte].uppercaseHex
    }.joined()
  }

  static func json(_ members: [(String, JSONValue)], _ blank: String = "") -> String {
    let pairs = members.map { "\(JSONValue.text($0.0).canonical)\(blank):\(blank)\($0.1.canonical)" }
    return "{\(blank)\(pairs.joined(separator: ",\(blank)"))\(blank)}"
  }
}
