// SPDX-License-Identifier: Apache-2.0
import JSONValues
import RegistrationURIs

/// A push message as delivered: the signed token, and a message ID that is not signed.
struct PushEnvelope: Sendable, Equatable {
  let messageID: String
  /// A compact JWT, not verified.
  let token: String

  static let longest = 16_384

  enum ParseError: Error, Equatable, Sendable {
    case tooLarge
    case malformed(String)
  }

  /// Parses a delivered message.
  /// - Parameter bytes: JSON in one of these forms: `{messageId, message}`; the map that Firebase gives an app (the
  ///   same members, or these members in `data`); Apple's payload (in `aps`); or the form that AM sends to Amazon SNS
  ///   (JSON texts in `GCM` and `APNS`). At most 16 KiB.
  /// - Throws: `.tooLarge`, or `.malformed` with the member that is wrong.
  init(_ bytes: [UInt8]) throws(ParseError) {
    guard bytes.count <= Self.longest else { throw .tooLarge }
    guard let value = JSONValue(parsing: bytes), case .object = value else { throw .malformed("not a JSON object") }
    // A subscriber of Amazon SNS receives AM's JSON as a text inside a notification.
    let message = value["Message"]?.unwrapped ?? value
    let amazon = ["GCM", "APNS", "APNS_SANDBOX"].lazy.compactMap { message[$0]?.unwrapped }.first
    self = try Self.read(amazon ?? message)
  }

  private static func read(_ value: JSONValue) throws(ParseError) -> PushEnvelope {
    let map = value["data"] ?? value["aps"] ?? value
    let token = value["aps"] == nil ? map["message"] : map["data"]
    guard let messageID = map["messageId"]?.text, !messageID.isEmpty else { throw .malformed("no messageId") }
    guard let token = token?.text, !token.isEmpty else { throw .malformed("no message") }
    guard messageID.utf8.count <= 256, messageID.isHeaderText else { throw .malformed("messageId") }
    return PushEnvelope(messageID: messageID, token: token)
  }

  init(messageID: String, token: String) {
    self.messageID = messageID
    self.token = token
  }
}

extension JSONValue {
  /// The JSON value inside a text; nil if it is not a text with JSON.
  fileprivate var unwrapped: JSONValue? { text.flatMap { JSONValue(parsing: Array($0.utf8)) } }
}
