import Cryptography
import JSONValues
import Secrets

/// A push message whose signature was found right. There is no other kind.
struct PushMessage: Sendable, Equatable {
  /// What a person has to do to accept it.
  enum Kind: Sendable, Equatable {
    case confirmation
    /// The login page shows one of these.
    case number([Int])
    case biometric
  }

  enum Flaw: Error, Equatable, Sendable {
    case notAToken
    /// Anything but HS256, which AM's own side would let the sender choose.
    case algorithm
    case nameless
    case forged
    case missing(String)
    case malformed(String)
  }

  /// The name that this device gave the mechanism.
  let mechanismUID: String
  let challenge: [UInt8]
  /// `name=value`, for the answer's way through the load balancer.
  let cookie: String?
  let kind: Kind
  /// A `k` that this version does not know; taken for a confirmation.
  let unknownKind: String?
  /// Seconds that AM promises to wait for the answer.
  let timeToLive: Int64
  /// Milliseconds since 1970 by AM's clock.
  let sentAtMilliseconds: Int64?
  /// AM's name for the person.
  let userID: String?
  /// For people: what AM's administrator wrote, where the login came from, what the journey added. Whoever logs in has
  /// a hand in all three.
  let text: String?
  let context: String?
  let payload: String?

  /// Scalars that people are shown of `text`, of `context`, of `payload`.
  static let textLimit = 155
  static let contextLimit = 1000
  static let payloadLimit = 3072

  private static let lifetimes: ClosedRange<Int64> = 1...86_400
  private static let usualLifetime: Int64 = 120

  /// The mechanism that should have signed, before anything is believed.
  static func mechanismUID(in token: JWS.Unverified) throws(Flaw) -> String {
    guard JSONValue(parsing: token.header)?["alg"] == .text("HS256") else { throw .algorithm }
    guard let uid = JSONValue(parsing: token.untrustedPayload)?["u"]?.text, !uid.isEmpty else { throw .nameless }
    return uid
  }

  /// Milliseconds since 1970, to the end of the year 9999.
  private static let moments: ClosedRange<Int64> = 0...253_402_300_799_999

  static func token(_ text: String) throws(Flaw) -> JWS.Unverified {
    do { return try JWS.Unverified(parsing: text) } catch { throw .notAToken }
  }

  init(_ token: JWS.Unverified, verifiedWith secret: SharedSecret) throws(Flaw) {
    mechanismUID = try Self.mechanismUID(in: token)
    guard let verified = try? token.payload(authenticatedBy: secret.bytes) else { throw .forged }
    guard let claims = JSONValue(parsing: verified), case .object = claims else { throw .malformed("claims") }
    guard let encoded = claims["c"]?.text else { throw .missing("c") }
    guard let challenge = bytes(lenientBase64: encoded), (1...1024).contains(challenge.count) else {
      throw .malformed("c")
    }
    self.challenge = challenge
    cookie = try Self.cookie(claims["l"])
    timeToLive = try Self.number(claims, "t") ?? Self.usualLifetime
    guard Self.lifetimes.contains(timeToLive) else { throw .malformed("t") }
    sentAtMilliseconds = try Self.number(claims, "i")
    guard Self.moments.contains(sentAtMilliseconds ?? 0) else { throw .malformed("i") }
    (kind, unknownKind) = try Self.kind(claims)
    userID = claims["d"]?.text.flatMap { $0.isEmpty ? nil : $0 }
    text = claims["m"]?.text
    context = claims["x"]?.text
    payload = claims["p"]?.text
  }

  private static func cookie(_ claim: JSONValue?) throws(Flaw) -> String? {
    guard let encoded = claim?.text, !encoded.isEmpty else { return nil }
    guard let bytes = bytes(lenientBase64: encoded), let text = String(validating: bytes, as: UTF8.self),
      text.isHeaderText
    else { throw .malformed("l") }
    return text
  }

  /// A decimal text, as AM has it, or a number.
  private static func number(_ claims: JSONValue, _ name: String) throws(Flaw) -> Int64? {
    guard let claim = claims[name], claim != .null else { return nil }
    guard let number = claim.integer ?? claim.text.flatMap({ Int64($0) }) else { throw .malformed(name) }
    return number
  }

  private static func kind(_ claims: JSONValue) throws(Flaw) -> (Kind, String?) {
    switch claims["k"]?.text?.lowercased() {
    case "challenge":
      let texts = (claims["n"]?.text ?? "").split(separator: ",", omittingEmptySubsequences: false)
      let numbers = texts.compactMap { Int($0) }.filter { (0...9999).contains($0) }
      // Of one length, so that each is typed as it is shown.
      guard numbers.count == texts.count, (2...10).contains(numbers.count), Set(numbers).count == numbers.count,
        Set(numbers.map { "\($0)".utf8.count }).count == 1
      else { throw .malformed("n") }
      return (.number(numbers), nil)
    case "biometric": return (.biometric, nil)
    case nil, "default": return (.confirmation, nil)
    case let unknown?: return (.confirmation, unknown)
    }
  }
}

extension PushMessage.Flaw: CustomStringConvertible {
  var description: String {
    switch self {
    case .notAToken: "it is not a JWT"
    case .algorithm: "it is not signed with HS256"
    case .nameless: "it names no mechanism"
    case .forged: "its signature is not that of the account's server"
    case .missing(let claim): "it has no \(claim)"
    case .malformed(let claim): "its \(claim) is not what it should be"
    }
  }
}
