// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// An unused account name made of the user's name and the host of the server, such as "ann@example.com" or
/// "ann@example.com-2".
/// - Returns: nil if no name of that form is valid.
package func accountName(of user: String, at server: TokenServerID, except taken: Set<String>) -> String? {
  let host = server.text.split(separator: ":").first ?? ""
  let name = "\(user)@\(host)"
  let candidates = [name] + (2...99).map { "\(name)-\($0)" }
  return candidates.first { isAccountName($0) && !taken.contains($0) }
}

/// Whether the text can be the name of an account: 1 to 64 bytes without white space and control or format characters.
package func isAccountName(_ name: String) -> Bool {
  (1...64).contains(name.utf8.count) && name.isSafeToShow && !name.contains { $0.isWhitespace || $0.isNewline }
}
