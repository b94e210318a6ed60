// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Testing

@testable import ReferenceServer

private let pin = String(repeating: "A", count: 43) + "="

private func wifi(
  name: String = "home of alice", password: String = "correct horse", country: String = "DE"
) -> String {
  "wifi_name = \"\(name)\"\nwifi_password = \"\(password)\"\nwifi_country = \"\(country)\"\n"
}

/// The settings of `token-server fleet`, against the program of the SD card image that takes them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct FleetSettingsTests {
  /// - Returns: the error of the command; nil if it takes the settings.
  private func refusal(of text: String) -> String? {
    do {
      _ = try FleetSettings(text)
      return nil
    } catch { return "\(error)" }
  }

  /// Whether a board takes the settings, on directories of this machine.
  private func isTakenByBoard(_ text: String) throws -> Bool {
    let files = FileManager.default
    let root = NSTemporaryDirectory() + "settings-\(UUID().uuidString)"
    defer { try? files.removeItem(atPath: root) }
    let board = "usr/share/approval-token/boards/raspberry-pi-4"
    let folders = ["boot/firmware", "etc/approval-token", "var/lib/approval-token", "state", "run", "commands", board]
    for folder in folders {
      try files.createDirectory(atPath: "\(root)/\(folder)", withIntermediateDirectories: true)
    }
    func write(_ text: String, to name: String) throws {
      try Data(text.utf8).write(to: URL(filePath: "\(root)/\(name)"))
    }
    try write("", to: "\(board)/board.toml")
    try write("state = \"/s\"\n", to: "etc/approval-token/config.toml")
    try write(text, to: "boot/firmware/approval-token.toml")
    for command in ["mount", "systemctl", "systemd-run"] {
      try write("#!/bin/sh\n", to: "commands/\(command)")
      try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: "\(root)/commands/\(command)")
    }
    let repository = URL(filePath: #filePath).appending(path: "../../..").standardized.path
    let program = repository + "/packaging/image/root/usr/libexec/approval-token/take-settings"
    let output = try run(
      "/usr/bin/env", ["PATH=\(root)/commands:/usr/bin:/bin", "APPROVAL_TOKEN_ROOT=\(root)", "/bin/sh", program])
    #expect(output.status == 0, "\(output.errors)")
    return !files.fileExists(atPath: root + "/boot/firmware/approval-token.toml")
  }

  static let wrong: [(String, String)] = [
    ("borad = \"raspberry-pi-4\"\n", "line 1 "),
    ("# mine\n\nboard = \"A b\"\n", "line 3 "),
    ("board = 'raspberry-pi-4'\n", "line 1 "),
    ("board = \"raspberry-pi-4\"\0\n", "line 1 "),
    ("[wifi]\n", "line 1 "),
    ("wifi_name\n", "line 1 "),
    ("wifi_name = a\n", "line 1 "),
    ("wifi_name = \"a\n\"\n", "line 1 "),
    ("wifi_name = \"a\" \"b\"\n", "line 1 "),
    ("wifi_name = \"a\\\"b\"\n", "line 1 "),
    ("wifi_name = \"\"\"a\"\"\"\n", "line 1 "),
    ("wifi_name = \"a\"\u{301}\n", "line 1 "),
    ("wifi_name = \"a\"\nwifi_country = \"DE\"\n", "wifi_password has"),
    (wifi(password: "seven77"), "wifi_password has"),
    (wifi(password: String(repeating: "x", count: 64)), "wifi_password has"),
    (wifi(password: "geheime Wörter"), "wifi_password has"),
    (wifi(name: String(repeating: "ü", count: 17)), "wifi_name has"),
    (wifi(name: ""), "wifi_name has"),
    (wifi(country: "de"), "wifi_country is"),
    ("server = \"http://auth.example.org\"\n", "server is"),
    ("server = \"https://a/path\"\n", "server is"),
    ("server = \"https://\"\n", "server is"), ("server = \"https://a:b:c\"\n", "server is"),
    ("server_pin = \"\(pin)\"\n", "server is"),
    ("server = \"https://a\"\nserver_pin = \"x\"\n", "server_pin is"),
  ]

  @Test("What a board does not take is refused, and the error names the line or the setting", arguments: wrong)
  func refused(text: String, part: String) throws {
    let why = refusal(of: text)
    #expect(why?.hasPrefix(part) == true, "\(why ?? "taken")")
    #expect(try !isTakenByBoard(text))
  }

  static let right: [String] = [
    "", "\n", "# für alle\n", "board = \"raspberry-pi-4\"",
    "\t board=\"raspberry-pi-4\" # the large one\r\n\r\n",
    wifi(), wifi() + "wifi_country = \"FR\"\n", "wifi_country = 'de'\n" + wifi(), "wifi_name = \"\"\n",
    "wifi_name = 'a\"b\\c'\nwifi_password = 'pass\"word\\'\nwifi_country = 'DE'\n",
    wifi(name: String(repeating: "ü", count: 16)),
    "server = \"https://auth.example.org:8443\"\nserver_pin = \"\(pin)\"\n",
    "server = \"https://[2001:db8::1]:8443\"\n", "server = \"https://192.0.2.1\"\n",
  ]

  @Test("What a board takes is taken", arguments: right) func taken(text: String) throws {
    #expect(refusal(of: text) == nil)
    #expect(try isTakenByBoard(text))
  }
}
