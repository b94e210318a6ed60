// SPDX-License-Identifier: Apache-2.0

/// The origin of an https address (RFC 6454): its host and port, in one form only, so that equal texts are equal
/// origins.
package struct HTTPOrigin: Hashable, Sendable, CustomStringConvertible {
  /// The maximum length in bytes.
  package static let longest = 256
  static let scheme = "https://"

  /// `https://HOST` or `https://HOST:PORT`, in lower case and without the port 443.
  package let text: String
  package var description: String { text }

  /// The host without the port; an IPv6 address in its brackets.
  package var host: String {
    let authority = text.dropFirst(Self.scheme.count)
    return String(authority.first == "[" ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" })
  }

  /// - Parameter text: `https://HOST` or `https://HOST:PORT`. The host is a name of ASCII letters, digits and hyphens
  ///   (an international name in its `xn--` form), an IPv4 address, or an IPv6 address in brackets.
  /// - Returns: nil for any other text, also one with a user name, a path or a `/` at the end.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.longest, text.hasPrefix(Self.scheme) else { return nil }
    let authority = text.utf8.dropFirst(Self.scheme.utf8.count).map(\.lowercased)
    let hostEnd =
      authority.first == UInt8(ascii: "[") ? authority.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } : nil
    let end = hostEnd ?? authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.count
    let (host, rest) = (authority[..<end], authority[end...])
    guard Self.isHost(host) else { return nil }
    let origin = Self.scheme + String(decoding: host, as: UTF8.self)
    if rest.isEmpty {
      self.text = origin
    } else {
      guard rest.first == UInt8(ascii: ":"), let port = Self.port(rest.dropFirst()) else { return nil }
      self.text = port == 443 ? origin : "\(origin):\(port)"
    }
  }

  private static func isHost(_ host: ArraySlice<UInt8>) -> Bool {
    if host.first == UInt8(ascii: "[") {
      return host.last == UInt8(ascii: "]") && (4...47).contains(host.count)
        && host.dropFirst().dropLast().allSatisfy {
          $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
        }
    }
    return host.count <= 253
      && host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
        (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
          && label.allSatisfy { $0.isLowercaseLetter || $0.isDigit || $0 == UInt8(ascii: "-") }
      }
  }

  private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
    guard (1...5).contains(digits.count), digits.allSatisfy(\.isDigit), digits.first != UInt8(ascii: "0") else {
      return nil
    }
    return UInt16(String(decoding: digits, as: UTF8.self))
  }
}

/// An https address, as it is sent: nothing in it is normalized later.
package struct HTTPSAddress: Hashable, Sendable {
  /// The maximum length in bytes.
  package static let longest = 2048

  package let origin: HTTPOrigin
  /// The path, which begins with `/`, and the query.
  package let target: String

  package var text: String { origin.text + target }

  /// - Returns: nil for a text that is no address or too long, and for one with a user name, a fragment, a segment `.`
  ///   or `..`, or a character that must be percent-encoded (RFC 3986 §2).
  package init?(_ text: String) {
    guard text.utf8.count <= Self.longest, text.hasPrefix(HTTPOrigin.scheme) else { return nil }
    let bytes = Array(text.utf8)
    let end = bytes[HTTPOrigin.scheme.utf8.count...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
    guard let origin = HTTPOrigin(String(decoding: bytes[..<(end ?? bytes.count)], as: UTF8.self)) else { return nil }
    let target = bytes[(end ?? bytes.count)...]
    guard Self.isTarget(target) else { return nil }
    self.origin = origin
    self.target = (target.first == UInt8(ascii: "/") ? "" : "/") + String(decoding: target, as: UTF8.self)
  }

  private static func isTarget(_ target: ArraySlice<UInt8>) -> Bool {
    guard target.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"#\\\"<>^`{|}".utf8.contains($0) }), areEncoded(target) else {
      return false
    }
    let path = target.prefix { $0 != UInt8(ascii: "?") }.map(\.lowercased)
    return path.split(separator: UInt8(ascii: "/")).allSatisfy { segment in
      ![".", ".."].contains(String(decoding: segment, as: UTF8.self).replacingEncodedDots)
    }
  }

  /// Whether two hexadecimal digits follow each `%`.
  private static func areEncoded(_ target: ArraySlice<UInt8>) -> Bool {
    target.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false).dropFirst().allSatisfy { part in
      part.count >= 2 && part.prefix(2).allSatisfy(\.lowercased.isHexDigit)
    }
  }
}

extension String {
  /// In lower case, with `.` for `%2e`.
  fileprivate var replacingEncodedDots: String {
    var (rest, text) = (self[...], "")
    while let first = rest.first {
      let isDot = rest.hasPrefix("%2e")
      text.append(isDot ? "." : first)
      rest = rest.dropFirst(isDot ? 3 : 1)
    }
    return text
  }
}

extension UInt8 {
  fileprivate var lowercased: UInt8 { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self }
  fileprivate var isLowercaseLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  /// Whether the byte is a hexadecimal digit of a text in lower case.
  fileprivate var isHexDigit: Bool { isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self) }
}
