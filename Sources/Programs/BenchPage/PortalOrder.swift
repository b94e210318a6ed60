// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import JSONValues

/// What the page asks the portal to start.
struct PortalOrder: Equatable, Sendable {
  /// The types of the bench's own token server.
  static let types = ["login", "payment", "number", "hurry", "finger", "badge", "key"]
  static let mostCharacters = 155

  let type: String
  let message: String
  /// What the user shall type on the keypad.
  let digits: String?

  /// - Parameter types: those that the token server has.
  /// - Throws: `BenchError` for another type, a text that is empty or too long, and digits that are none.
  init(_ body: JSONValue, types: [String] = types) throws(BenchError) {
    guard let type = body["type"]?.text, types.contains(type) else { throw BenchError("there is no such type") }
    guard let message = body["message"]?.text, (1...Self.mostCharacters).contains(message.unicodeScalars.count) else {
      throw BenchError("the message has 1 to \(Self.mostCharacters) characters")
    }
    let digits = body["digits"]?.text
    guard body["digits"] == nil || digits != nil else { throw BenchError("\"digits\" is not a text") }
    let areDigits = digits?.utf8.allSatisfy { (0x30...0x39).contains($0) } ?? true
    guard (type == "number") == (digits != nil), areDigits, (1...8).contains(digits?.utf8.count ?? 1) else {
      throw BenchError("this type has no digits, or 1 to 8")
    }
    (self.type, self.message, self.digits) = (type, message, digits)
  }
}

/// What the user does at a reader of the board.
struct ReaderAct: Equatable, Sendable {
  let answer: SimulatedAnswer
  let words: String

  /// - Throws: `BenchError` for anything else than what the page has buttons for.
  init(_ body: JSONValue) throws(BenchError) {
    (answer, words) =
      switch body["act"]?.text {
      case "finger": (.finger("index"), "puts the finger on the reader")
      case "other-finger": (.finger("stranger"), "puts another finger on the reader")
      case "bad-scan": (.retry(reason: "not centered"), "puts the finger beside the reader")
      case "badge": (.badge("red"), "presents the badge")
      case "other-badge": (.badge("blue"), "presents another badge")
      case "no-badge": (.noBadge, "unplugs the reader of badges")
      case "key": (.touch, "touches the security key")
      case "no-key": (.noKey, "unplugs the security key")
      default: throw BenchError("there is no such act")
      }
  }
}
