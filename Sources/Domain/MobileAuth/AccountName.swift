// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// An unused account name made of the user's name and the host of the server, such as "ann@example.com" or
/// "ann@example.com-2". The user's name comes from the server, and account names are typed into shells: it may contain
/// only ASCII letters, digits and `._+@-`, and begins with a letter or digit.
/// - Returns: nil if no name of that form is valid.
package func accountName(of user: String, at server: TokenServerID, except taken: Set<String>) -> String? {
  guard let first = user.first, first.isASCIIAlphanumeric,
    user.allSatisfy({ $0.isASCIIAlphanumeric || "._+@-".contains($0) })
  else { return nil }
  // `host[:port]`; an IPv6 address is in brackets.
  let isAddress = server.text.hasPrefix("[")
  let host = server.text.prefix { isAddress ? $0 != "]" : $0 != ":" } + (isAddress ? "]" : "")
  let name = "\(user)@\(host)"
  let candidates = [name] + (2...99).map { "\(name)-\($0)" }
  return candidates.first { isAccountName($0) && !taken.contains($0) }
}

/// Whether the text can be the name of an account: 1 to 64 bytes without white space and control, format or invisible
/// characters.
package func isAccountName(_ name: String) -> Bool {
  (1...64).contains(name.utf8.count) && name.isSafeName && !name.contains { $0.isWhitespace || $0.isNewline }
}

extension Character {
  fileprivate var isASCIIAlphanumeric: Bool { isASCII && (isLetter || isNumber) }
}
