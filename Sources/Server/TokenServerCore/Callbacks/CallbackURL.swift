// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// The callback URL of a portal: `http://` or `https://`, HOST, optionally `:PORT`, path and query, with the characters
/// of RFC 3986 only. A URL that a URL library would have to repair is rejected: libraries repair differently, and the
/// URL that was checked must be the URL that is called.
package struct CallbackURL: Sendable, Equatable {
  /// The maximum length in bytes.
  package static let longest = 2048

  /// The whole URL, as received.
  package let text: String
  package let isSecure: Bool
  /// Lowercase; an IPv6 address is in brackets.
  package let host: String
  package let port: Int

  /// `HOST:PORT`.
  package var authority: String { "\(host):\(port)" }

  /// The host without the brackets of an IPv6 address.
  package var bareHost: String { host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host }

  /// The path and the query in the form of the request line.
  package var target: String {
    let rest = text.dropFirst(isSecure ? 8 : 7).drop { $0 != "/" && $0 != "?" }
    return rest.hasPrefix("/") ? String(rest) : "/" + rest
  }

  package enum ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    case tooLong, scheme, character, userInfo, host, port, percentEncoding

    package var description: String {
      switch self {
      case .tooLong: "is longer than \(CallbackURL.longest) bytes"
      case .scheme: "does not begin with https:// or http://"
      case .character: "has a character that no URL has; percent-encode it (RFC 3986)"
      case .userInfo: "has a user or password; configure them as [[callback]] of the server"
      case .host: "names no host: a DNS name, an IPv4 address, or an IPv6 address in brackets is needed"
      case .port: "has a port that is not 1 to 65535"
      case .percentEncoding: "has a % that is not followed by two hex digits"
      }
    }
  }

  package init(parsing text: String) throws(ParseError) {
    guard text.utf8.count <= Self.longest else { throw .tooLong }
    let bytes = Array(text.utf8)
    // No fragment, because it is never sent.
    guard bytes.allSatisfy(Self.isAllowed) else { throw .character }
    let scheme = bytes.prefix { $0 != UInt8(ascii: ":") }.lowercased
    guard scheme == "http" || scheme == "https", bytes.dropFirst(scheme.utf8.count).starts(with: "://".utf8) else {
      throw .scheme
    }
    let rest = bytes.dropFirst(scheme.utf8.count + 3)
    let authority = rest.prefix { ![UInt8(ascii: "/"), UInt8(ascii: "?")].contains($0) }
    // Credentials are configured, so an @ can only be part of a path or query.
    guard !authority.contains(UInt8(ascii: "@")) else { throw .userInfo }
    guard !rest.dropFirst(authority.count).contains(where: { "[]".utf8.contains($0) }) else { throw .character }
    guard Self.hasOnlyWholeTriplets(rest.dropFirst(authority.count)) else { throw .percentEncoding }
    self.text = text
    isSecure = scheme == "https"
    (host, port) = try Self.hostAndPort(authority, defaultPort: isSecure ? 443 : 80)
  }

  package static func isAcceptable(_ text: String) -> Bool { (try? CallbackURL(parsing: text)) != nil }

  private static func hostAndPort(_ authority: ArraySlice<UInt8>, defaultPort: Int) throws(ParseError) -> (String, Int)
  {
    var host = authority
    var port = defaultPort
    let isBracketed = authority.first == UInt8(ascii: "[")
    let end = isBracketed ? authority.lastIndex(of: UInt8(ascii: "]")).map { $0 + 1 } : nil
    if let colon = authority[(end ?? authority.startIndex)...].firstIndex(of: UInt8(ascii: ":")) {
      let digits = authority[(colon + 1)...]
      guard (1...5).contains(digits.count), digits.allSatisfy(\.isDigit),
        let number = Int(String(decoding: digits, as: UTF8.self)), (1...65535).contains(number)
      else { throw .port }
      host = authority[..<colon]
      port = number
    }
    guard isBracketed ? isAddress(host) : isName(host) else { throw .host }
    return (host.lowercased, port)
  }

  /// Whether the host is `[IPv6]`.
  private static func isAddress(_ host: ArraySlice<UInt8>) -> Bool {
    guard host.count > 2, host.last == UInt8(ascii: "]") else { return false }
    return IPAddressBytes.parse(String(decoding: host.dropFirst().dropLast(), as: UTF8.self))?.count == 16
  }

  private static func isName(_ host: ArraySlice<UInt8>) -> Bool {
    (1...253).contains(host.count)
      && host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
        (1...63).contains(label.count)
          && label.allSatisfy { $0.isDigit || $0.isLetter || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
      }
  }

  private static func hasOnlyWholeTriplets(_ bytes: ArraySlice<UInt8>) -> Bool {
    var rest = bytes
    while let percent = rest.firstIndex(of: UInt8(ascii: "%")) {
      let digits = rest[(percent + 1)...].prefix(2)
      guard digits.count == 2, digits.allSatisfy(\.isHexDigit) else { return false }
      rest = rest[(percent + 3)...]
    }
    return true
  }

  /// The unreserved and reserved characters without `#`, and `%` (RFC 3986 §2).
  private static func isAllowed(_ byte: UInt8) -> Bool {
    byte.isLetter || byte.isDigit || "-._~:/?[]!$&'()*+,;=%@".utf8.contains(byte)
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  fileprivate var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
  fileprivate var isHexDigit: Bool { isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20) }
}

extension Collection where Element == UInt8 {
  fileprivate var lowercased: String { String(decoding: self, as: UTF8.self).lowercased() }
}
