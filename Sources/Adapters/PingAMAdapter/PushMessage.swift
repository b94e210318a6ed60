// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import RegistrationURIs
import Secrets

/// A push message whose signature has been verified.
struct PushMessage: Sendable, Equatable {
  /// The action that approves the message.
  enum Kind: Sendable, Equatable {
    case confirmation
    /// The user chooses the number that the login page shows from these.
    case number([Int])
    case biometric
  }

  enum ParseError: Error, Equatable, Sendable {
    case notAToken
    /// An algorithm other than HS256. AM's own implementation accepts the sender's choice; this token does not.
    case algorithm
    case nameless
    case forged
    case missing(String)
    case malformed(String)
  }

  /// The mechanism's UUID, chosen by this token at registration.
  let mechanismUID: String
  let challenge: [UInt8]
  /// `name=value`, sent with the answer so that the load balancer routes it to the right server.
  let cookie: String?
  let kind: Kind
  /// The value of `k` if this version does not know it; the message is then treated as a confirmation.
  let unknownKind: String?
  /// How long AM waits for the answer, in seconds.
  let timeToLive: Int64
  /// Milliseconds since 1970, by AM's clock.
  let sentAtMilliseconds: Int64?
  /// AM's identifier of the user.
  let userID: String?
  /// Texts for display: from AM's administrator (`text`), about the origin of the login (`context`) and from the
  /// authentication journey (`payload`). An attacker who logs in can influence all three.
  let text: String?
  let context: String?
  let payload: String?

  /// The maximum number of scalars displayed of `text`, `context` and `payload`; `textLimit` in the log. Programs get
  /// all of `text`: no message is longer than its envelope.
  static let messageLimit = PushEnvelope.longest
  static let textLimit = 155
  static let contextLimit = 1000
  static let payloadLimit = 3072

  private static let lifetimes: ClosedRange<Int64> = 1...86_400
  private static let usualLifetime: Int64 = 120

  /// Returns the mechanism named in a token that is not verified yet, to find its key.
  /// - Throws: `.algorithm`, `.malformed`, `.nameless`.
  static func mechanismUID(in token: JWS.Unverified) throws(ParseError) -> String {
    guard JSONValue(parsing: token.header)?["alg"] == .text("HS256") else { throw .algorithm }
    guard let claims = JSONValue(parsing: token.untrustedPayload), case .object = claims else {
      throw .malformed("payload")
    }
    guard let uid = claims["u"]?.text, !uid.isEmpty else { throw .nameless }
    return uid
  }

  /// Valid times: milliseconds since 1970, to the end of the year 9999.
  private static let moments: ClosedRange<Int64> = 0...253_402_300_799_999

  static func token(_ text: String) throws(ParseError) -> JWS.Unverified {
    do { return try JWS.Unverified(parsing: text) } catch { throw .notAToken }
  }

  init(_ token: JWS.Unverified, verifiedWith secret: SharedSecret) throws(ParseError) {
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

  private static func cookie(_ claim: JSONValue?) throws(ParseError) -> String? {
    guard let encoded = claim?.text, !encoded.isEmpty else { return nil }
    guard let bytes = bytes(lenientBase64: encoded), let text = String(validating: bytes, as: UTF8.self),
      text.isHeaderText
    else { throw .malformed("l") }
    return text
  }

  /// Reads a claim that is a decimal text, as AM sends it, or a number.
  private static func number(_ claims: JSONValue, _ name: String) throws(ParseError) -> Int64? {
    guard let claim = claims[name], claim != .null else { return nil }
    guard let number = claim.integer ?? claim.text.flatMap({ Int64($0) }) else { throw .malformed(name) }
    return number
  }

  private static func kind(_ claims: JSONValue) throws(ParseError) -> (Kind, String?) {
    switch claims["k"]?.text?.lowercased() {
    case "challenge":
      let texts = (claims["n"]?.text ?? "").split(separator: ",", omittingEmptySubsequences: false)
      let numbers = texts.compactMap { Int($0) }.filter { (0...9999).contains($0) }
      // All numbers must have the same number of digits, so that each is typed as displayed.
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

extension PushMessage.ParseError: CustomStringConvertible {
  var description: String {
    switch self {
    case .notAToken: "it is not a JWT"
    case .algorithm: "it is not signed with HS256"
    case .nameless: "it names no mechanism"
    case .forged: "its signature is wrong"
    case .missing(let claim): "it has no \(claim)"
    case .malformed(let claim): "its \(claim) is malformed"
    }
  }
}
