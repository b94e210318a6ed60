// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import TOMLSyntax
import Testing

@testable import AuthenticatorPlugins

@Suite("The configuration of a plug-in", .timeLimit(.minutes(1))) struct PluginConfigurationTests {
  private func read(_ toml: String) throws -> PluginConfiguration {
    var reader = TableReader(try TOMLSyntax.parse(toml))
    return try PluginConfiguration(&reader)
  }

  @Test("A socket or a command, with a time limit and a hold") func both() throws {
    let socket = try read("authenticator = \"badge\"\nsocket = \"/run/badge\"")
    #expect(socket.program == .socket("/run/badge") && socket.timeLimit == .seconds(60) && !socket.needsHold)
    let command = try read(
      "authenticator = \"badge\"\ncommand = [\"/bin/x\", \"y\"]\ntime_limit_seconds = 5\nhold = true")
    #expect(command.program == .command(["/bin/x", "y"]) && command.timeLimit == .seconds(5) && command.needsHold)
  }

  @Test("The driver of a biometric one counts fingers") func kinds() throws {
    let badge = PluginDriver.make(try read("authenticator = \"badge\"\nsocket = \"/run/badge\""))
    #expect(badge.kind == .custom && badge is PluginDriver)
    let finger = PluginDriver.make(
      try read("authenticator = \"finger\"\nkind = \"biometric\"\nsocket = \"/run/finger\""))
    #expect(finger.kind == .biometric && finger is FingerprintDriver && finger.authenticator == "finger")
    #expect(finger.input == .external(hold: false))
    // A camera proves no act of its user.
    let face = PluginDriver.make(
      try read("authenticator = \"face\"\nkind = \"biometric\"\nsocket = \"/run/face\"\nhold = true"))
    #expect(face.input == .external(hold: true))
  }

  @Test(
    "A mistake is named",
    arguments: [
      ("", "authenticator"), ("authenticator = \"pin\"\nsocket = \"/s\"", "authenticator"),
      ("authenticator = \"a/b\"\nsocket = \"/s\"", "authenticator"), ("authenticator = \"a\"", "command"),
      ("authenticator = \"a\"\nsocket = \"/s\"\ncommand = [\"/c\"]", "command"),
      ("authenticator = \"a\"\nsocket = \"s\"", "socket"),
      ("authenticator = \"a\"\nsocket = \"/\(String(repeating: "s", count: 107))\"", "socket"),
      ("authenticator = \"a\"\ncommand = [\"c\"]", "command"), ("authenticator = \"a\"\ncommand = []", "command"),
      ("authenticator = \"a\"\nsocket = \"/s\"\ntime_limit_seconds = 121", "time_limit_seconds"),
      ("authenticator = \"a\"\nsocket = \"/s\"\nkind = \"pin\"", "kind"),
      ("authenticator = \"a\"\nsocket = \"/s\"\nuser = \"x\"", "unknown key \"user\""),
    ])
  func mistakes(toml: String, name: String) {
    #expect {
      try read(toml)
    } throws: { error in
      (error as? TableReader.TableError)?.why.contains(name) == true
    }
  }
}
