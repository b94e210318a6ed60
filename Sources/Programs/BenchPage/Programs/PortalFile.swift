// SPDX-License-Identifier: Apache-2.0

/// The credentials of a portal: a configuration file of curl, as docs/token-server.md shows it.
///
/// ```
/// user = "portal:SECRET"
/// cacert = "/srv/token-server/ca.pem"
/// silent
/// ```
struct PortalFile: Equatable, Sendable {
  static let largest = 4096

  let client: String
  let secret: String
  /// A PEM file with certificate authorities; nil for those of the system.
  let authority: String?

  /// - Throws: `BenchError` for other options than these, and for values with escapes.
  init(parsing text: String) throws(BenchError) {
    var values: [String: String] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let line = line.trimmed
      guard !line.isEmpty, !line.hasPrefix("#"), !["silent", "show-error"].contains(line) else { continue }
      let halves = line.split(separator: "=", maxSplits: 1)
      guard halves.count == 2, case let name = String(halves[0].trimmed), ["user", "cacert"].contains(name) else {
        throw BenchError("only user, cacert, silent and show-error are known, one in a line")
      }
      var value = halves[1].trimmed
      if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") { value = value.dropFirst().dropLast() }
      guard !value.isEmpty, !value.contains(where: { "\"\\".contains($0) }), values[name] == nil else {
        throw BenchError("the value of \(name) is empty, has an escape, or is there twice")
      }
      values[name] = String(value)
    }
    let user = values["user"]?.split(separator: ":", maxSplits: 1) ?? []
    guard user.count == 2 else { throw BenchError("the line user = \"PORTAL:SECRET\" is missing") }
    (client, secret, authority) = (String(user[0]), String(user[1]), values["cacert"])
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    let start = drop { $0 == " " || $0 == "\t" }
    return start[..<(start.lastIndex { $0 != " " && $0 != "\t" }.map(start.index(after:)) ?? start.startIndex)]
  }
}
