// SPDX-License-Identifier: Apache-2.0

/// The lines of `--settings` for each board's `approval-token.toml`. They are checked as a board does it
/// (`take-settings` in `packaging/image`). Only the board knows whether it has the profile that `board` names.
struct FleetSettings {
  private static let names: Set<String> = [
    "board", "wifi_name", "wifi_password", "wifi_country", "server", "server_pin",
  ]

  /// The lines that are not empty, each with its end.
  let text: String

  /// - Throws: `CommandError` with the line or the setting that is wrong.
  init(_ text: String) throws {
    let lines = Array(text.utf8).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
    var values: [String: String] = [:]
    for (number, line) in zip(1..., lines) {
      if let (name, value) = try Self.setting(in: line, number) { values[name] = value }
    }
    try Self.check(values)
    self.text = lines.filter { !$0.isEmpty }.map { String(decoding: $0, as: UTF8.self) + "\n" }.joined()
  }

  /// - Returns: nil for a line without a setting: an empty one, or a comment.
  private static func setting(in line: ArraySlice<UInt8>, _ number: Int) throws -> (name: String, value: String)? {
    let wrong = CommandError(
      "line \(number) is not board = \"NAME\" (a-z, 0-9 and -), wifi_name, wifi_password, wifi_country, server or "
        + "server_pin, each with a text in quotes")
    guard line.allSatisfy({ $0 >= 32 || $0 == UInt8(ascii: "\t") }) else { throw wrong }
    var rest = line.drop(while: isBlank)
    guard let first = rest.first, first != UInt8(ascii: "#") else { return nil }
    let name = String(decoding: rest.prefix(while: isOfName), as: UTF8.self)
    guard name != "host" else {
      throw CommandError("line \(number): the host is in the list, and must not be in the settings")
    }
    rest = rest.dropFirst(name.utf8.count).drop(while: isBlank)
    guard rest.popFirst() == UInt8(ascii: "=") else { throw wrong }
    rest = rest.drop(while: isBlank)
    guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { throw wrong }
    let isLiteral = quote == UInt8(ascii: "'")
    let bytes = rest.prefix { $0 != quote && (isLiteral || $0 != UInt8(ascii: "\\")) }
    rest = rest.dropFirst(bytes.count)
    guard rest.popFirst() == quote else { throw wrong }
    rest = rest.drop(while: isBlank)
    guard rest.isEmpty || rest.first == UInt8(ascii: "#"), names.contains(name) else { throw wrong }
    let value = String(decoding: bytes, as: UTF8.self)
    guard name != "board" || (!isLiteral && FleetList.isHost(value[...])) else { throw wrong }
    return (name, value)
  }

  /// - Parameter values: by name. Of several, a board takes the last one.
  private static func check(_ values: [String: String]) throws {
    func bytes(_ name: String) -> [UInt8] { Array((values[name] ?? "").utf8) }
    let (name, password, country) = (bytes("wifi_name"), bytes("wifi_password"), bytes("wifi_country"))
    if !(name + password + country).isEmpty {
      guard (1...32).contains(name.count) else { throw CommandError("wifi_name has 1 to 32 bytes") }
      guard (8...63).contains(password.count), password.allSatisfy({ (32...126).contains($0) }) else {
        throw CommandError("wifi_password has 8 to 63 characters of ASCII")
      }
      guard country.count == 2, country.allSatisfy({ (65...90).contains($0) }) else {
        throw CommandError("wifi_country is two capital letters, for example \"DE\"")
      }
    }
    let (server, pin) = (bytes("server"), bytes("server_pin"))
    guard !(server + pin).isEmpty else { return }
    let scheme = Array("https://".utf8)
    let host = server.dropFirst(scheme.count)
    guard server.starts(with: scheme), isAuthority(host) else {
      throw CommandError("server is https://HOST or https://HOST:PORT")
    }
    let isPin = pin.count == 44 && pin.last == UInt8(ascii: "=") && pin.dropLast().allSatisfy(isOfBase64)
    guard pin.isEmpty || isPin else { throw CommandError("server_pin is 44 characters of Base64") }
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  private static func isOfName(_ byte: UInt8) -> Bool { (97...122).contains(byte) || byte == UInt8(ascii: "_") }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
  }

  /// A host name, an IPv4 address, or an IPv6 address in brackets, and a port if there is one. `take-settings` in the
  /// image has the same rule.
  private static func isAuthority(_ bytes: ArraySlice<UInt8>) -> Bool {
    String(decoding: bytes, as: UTF8.self)
      .wholeMatch(of: /([A-Za-z0-9.\-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?/) != nil
  }

  private static func isOfBase64(_ byte: UInt8) -> Bool { isLetterOrDigit(byte) || "+/".utf8.contains(byte) }
}
