// SPDX-License-Identifier: Apache-2.0
import JSONValues
import MobileAuth

/// An answer to a push message.
enum PushAnswer: Sendable, Equatable {
  /// Approval; `number` is the number that the login page shows, for a message that offers numbers.
  case accept(number: String?)
  case deny

  /// The claims of the signed answer. AM denies if the claim `deny` is present, with any value.
  func claims(response: String) -> [String: JSONValue] {
    var claims = ["response": JSONValue.text(response)]
    switch self {
    case .accept(let number): claims["challengeResponse"] = number.map { .text($0) }
    case .deny: claims["deny"] = .bool(true)
    }
    return claims
  }

  func body(to kept: StoredMessage, of mechanism: Mechanism) -> [UInt8] {
    mechanism.secret.body(
      messageID: kept.envelope.messageID, claims(response: mechanism.secret.answer(to: kept.message.challenge)))
  }
}
