import JSONValues
import MobileAuth

/// An answer to a push message.
enum PushAnswer: Sendable, Equatable {
  /// The number that the login page shows, for a message that offers some.
  case accept(number: String?)
  case deny

  /// `deny` is there or not; AM denies whatever its value is.
  func claims(response: String) -> [String: JSONValue] {
    var claims = ["response": JSONValue.text(response)]
    switch self {
    case .accept(let number): claims["challengeResponse"] = number.map { .text($0) }
    case .deny: claims["deny"] = .bool(true)
    }
    return claims
  }

  func body(to kept: KeptMessage, of mechanism: Mechanism) -> [UInt8] {
    mechanism.secret.body(
      messageID: kept.envelope.messageID, claims(response: mechanism.secret.answer(to: kept.message.challenge)))
  }
}
