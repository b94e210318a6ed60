// SPDX-License-Identifier: Apache-2.0
import DisplayText
import HTTP
import JSONValues
import MobileAuth

/// A response of the token server itself: JSON with a `result`. Other responses come from a proxy.
enum Reply: Sendable, Equatable {
  /// `result.value`, and `detail`.
  case value(JSONValue, detail: JSONValue?)
  /// `result.error`. The text is only for logs: servers translate it, and some hide it.
  case error(status: Int, code: Int, message: String)

  /// Error codes that this adapter distinguishes.
  enum Code {
    static let signatureOrTime = 10
    static let forbidden = 303
    static let notFound = 601
    static let parameter = 905
    /// Replaces every other code if the administrator hides them.
    static let hidden = -311
  }

  init?(_ response: HTTPResponse) { self.init(status: response.status, JSONValue(parsing: response.body)) }

  /// - Parameter body: the response's JSON; nil for another body.
  init?(status: Int, _ body: JSONValue?) {
    guard let body, let result = body["result"] else { return nil }
    if (200..<300).contains(status) {
      guard result["status"] == .bool(true), let value = result["value"] else { return nil }
      self = .value(value, detail: body["detail"])
    } else {
      guard let code = result["error"]?["code"]?.integer.flatMap(Int.init(exactly:)) else { return nil }
      self = .error(
        status: status, code: code, message: (result["error"]?["message"]?.text ?? "").sanitized)
    }
  }
}
