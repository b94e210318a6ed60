import Cryptography

/// What an `Authorization` header carries (RFC 9110 §11.6.2): a scheme in any case, a space, and one word.
enum AuthorizationHeader {
  /// - Parameter scheme: in lower case.
  /// - Returns: the word; nil without a header, or with one of another scheme or shape.
  static func word(of header: String?, scheme: String) -> String? {
    guard let parts = header?.split(separator: " "), parts.count == 2, parts[0].lowercased() == scheme else {
      return nil
    }
    return String(parts[1])
  }

  /// - Returns: user-id and password of HTTP Basic (RFC 7617); the password may have colons.
  static func basic(of header: String?) -> (id: String, secret: String)? {
    guard let decoded = word(of: header, scheme: "basic").flatMap({ bytes(base64: $0) }),
      let text = String(validating: decoded, as: UTF8.self), let colon = text.firstIndex(of: ":")
    else { return nil }
    return (String(text[..<colon]), String(text[text.index(after: colon)...]))
  }
}
