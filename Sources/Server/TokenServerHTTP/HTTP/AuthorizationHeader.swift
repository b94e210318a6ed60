// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText

/// Parses the `Authorization` header (RFC 9110 §11.6.2): a case-insensitive scheme, spaces, and the credentials without
/// a space.
enum AuthorizationHeader {
  /// - Parameter scheme: the expected scheme, in lower case.
  /// - Returns: the credentials; nil without a header, or if the header has another scheme or another format.
  static func word(of header: String?, scheme: String) -> String? {
    guard let parts = header?.split(separator: " "), parts.count == 2, parts[0].lowercased() == scheme else {
      return nil
    }
    return String(parts[1])
  }

  /// - Returns: the user-id and the password of HTTP Basic (RFC 7617); nil without valid ones. The password may contain
  ///   colons.
  static func basic(of header: String?) -> (id: String, secret: String)? {
    // A colon is a byte: followed by a combining mark it is not the character ":".
    guard let decoded = word(of: header, scheme: "basic").flatMap({ bytes(base64: $0) }), !decoded.contains(0),
      let colon = decoded.firstIndex(of: UInt8(ascii: ":")),
      let id = String(validating: decoded[..<colon], as: UTF8.self),
      let secret = String(validating: decoded[(colon + 1)...], as: UTF8.self), !id.hasTooManyCombiningMarks
    else { return nil }
    return (id, secret)
  }
}
