import Courier
import JSONValues
import MobileAuth

/// A token server's answer that is one: JSON with a `result`. Anything else came from something in between.
enum Reply: Sendable, Equatable {
  /// `result.value`, and `detail`.
  case value(JSONValue, detail: JSONValue?)
  /// `result.error`. The text is for logs; it is translated, and some servers hide it.
  case error(status: Int, code: Int, message: String)

  /// Codes that decide something.
  enum Code {
    static let signatureOrTime = 10
    static let forbidden = 303
    static let notFound = 601
    static let parameter = 905
    /// In place of any other, where the administrator hides them.
    static let hidden = -311
  }

  init?(_ response: HTTPResponse) {
    guard let body = JSONValue(parsing: response.body), let result = body["result"] else { return nil }
    if (200..<300).contains(response.status) {
      guard result["status"] == .bool(true), let value = result["value"] else { return nil }
      self = .value(value, detail: body["detail"])
    } else {
      guard let code = result["error"]?["code"]?.integer.flatMap(Int.init(exactly:)) else { return nil }
      self = .error(
        status: response.status, code: code, message: (result["error"]?["message"]?.text ?? "").forPeople)
    }
  }
}
