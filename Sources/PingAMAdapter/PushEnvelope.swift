import JSONValues

/// A push message as somebody brings it: the signed part, and a name for it that nobody has signed.
struct PushEnvelope: Sendable, Equatable {
  let messageID: String
  /// A compact JWT, believed by nobody yet.
  let token: String

  static let longest = 16_384

  enum Flaw: Error, Equatable, Sendable {
    case tooLarge
    case malformed(String)
  }

  /// - Parameter bytes: JSON: `{messageId, message}`; what Firebase hands to an app (that, or the same under `data`);
  ///   Apple's payload (under `aps`); or what AM gives to Amazon (texts with JSON under `GCM` and `APNS`).
  init(_ bytes: [UInt8]) throws(Flaw) {
    guard bytes.count <= Self.longest else { throw .tooLarge }
    guard let value = JSONValue(parsing: bytes), case .object = value else { throw .malformed("not a JSON object") }
    // Amazon's subscribers get what AM gave it as a text inside a notification.
    let message = value["Message"]?.unwrapped ?? value
    let amazon = ["GCM", "APNS", "APNS_SANDBOX"].lazy.compactMap { message[$0]?.unwrapped }.first
    self = try Self.read(amazon ?? message)
  }

  private static func read(_ value: JSONValue) throws(Flaw) -> PushEnvelope {
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
  /// The JSON in a text.
  fileprivate var unwrapped: JSONValue? { text.flatMap { JSONValue(parsing: Array($0.utf8)) } }
}
