// SPDX-License-Identifier: Apache-2.0
import AuthenticatorPlugins
import Boards
import ControlProtocol
import Foundation
import MobileAuth
import ServerBackends
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct ConfigurationTests {
  @Test("Every key is read") func everyKeyIsRead() throws {
    let configuration = try Configuration(
      parsing: "board = \"b\"\nstate = \"/s\"\n[tls]\nauthorities = \"/ca.pem\"", file: "f")
    #expect(configuration.board == "b" && configuration.state == "/s" && configuration.authorities == "/ca.pem")
  }

  @Test("Durations have the unit of their key") func durations() throws {
    let push = try Configuration(
      parsing: "[push]\nidle_seconds = 12\nfast_ms = 345\nlifetime_seconds = 67", file: "f"
    ).push
    #expect(push.backends.idlePoll == .seconds(12) && push.backends.fastPoll == .milliseconds(345))
    #expect(push.backends.requestLifetime == .seconds(67))
  }

  @Test("The user name at the broker is read") func brokerUser() throws {
    let mqtt = "[mqtt]\nbroker = \"b\"\nusername = \"u\"\npassword_file = \"/p\""
    #expect(try Configuration(parsing: mqtt, file: "f").mqtt?.username == "u")
  }

  @Test("The texts of requests are recorded only on request") func logTexts() throws {
    #expect(try !Configuration(parsing: "", file: "f").recordsTexts)
    #expect(try Configuration(parsing: "[log]\ntexts = true", file: "f").recordsTexts)
  }

  @Test("A display is announced only if the configuration has one", arguments: [false, true])
  func display(follows: Bool) throws {
    let configuration = try Configuration(parsing: "[display]\nfollows_watch = \(follows)", file: "f")
    let fixture = try ServiceFixture()
    let context = BackendContext(fixture.vault, configuration, fixture.board, in: fixture.context.environment)
    #expect(context.board?.hasDisplay == follows)
    #expect(try !Configuration(parsing: "", file: "f").hasDisplay)
  }

  @Test("Keypad codes are announced on a board with a keypad") func keypadCodes() throws {
    let configuration = try Configuration(
      parsing: "[authenticators]\nkeypad_codes = [\"employee-number\", \"a.b_c\"]", file: "f")
    let fixture = try ServiceFixture()
    let context = BackendContext(fixture.vault, configuration, fixture.board, in: fixture.context.environment)
    #expect(context.drivers.usable(as: .custom) == ["a.b_c", "employee-number"])
    #expect(try Configuration(parsing: "", file: "f").keypadCodes.isEmpty)
  }

  @Test("Simulated fingerprints are announced, and a PIN makes them usable for the configured hours")
  func fingerprints() throws {
    let configuration = try Configuration(
      parsing: "[authenticators]\nsimulated_fingerprint = \"finger\"\nfingerprint_hours = 2", file: "f")
    let fixture = try ServiceFixture()
    let context = BackendContext(fixture.vault, configuration, fixture.board, in: fixture.context.environment)
    #expect(context.drivers.usable(as: .biometric) == ["finger"] && context.drivers.usable(as: .custom).isEmpty)
    #expect(context.unlockedTokens.lifetime == .seconds(7200))
    #expect(try Configuration(parsing: "", file: "f").fingerprintLifetime == .seconds(12 * 3600))
    for hours in [0, 169] {
      #expect(throws: CommandError.self) {
        try Configuration(parsing: "[authenticators]\nfingerprint_hours = \(hours)", file: "f")
      }
    }
  }

  /// A configuration file, with these files in its folder `authenticators.d`.
  @Test("Authorities that cannot be read are named at the start") func missingAuthorities() throws {
    let error = #expect(throws: CommandError.self) {
      _ = try read("[tls]\nauthorities = \"/no/ca.pem\"", plugins: [:])
    }
    #expect(error?.description.contains("`tls.authorities`: cannot read /no/ca.pem: No such file") == true)
    #expect(try read("[tls]\nauthorities = \"/etc/passwd\"", plugins: [:]).authorities == "/etc/passwd")
  }

  /// The device process would not send them to the network process.
  @Test("Authorities that are too long are named at the start", arguments: ["tls", "mqtt"])
  func longAuthorities(table: String) throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }
    let broker = table == "mqtt" ? "broker = \"localhost:8883\"\n" : ""
    for (count, isUsable) in [(524_288, true), (524_289, false)] {
      try Data(count: count).write(to: file)
      let configuration = Result {
        try read("[\(table)]\n\(broker)authorities = \"\(file.path)\"", plugins: [:])
      }
      guard !isUsable else {
        _ = try configuration.get()
        continue
      }
      let error = #expect(throws: CommandError.self) { try configuration.get() }
      #expect(
        error?.description.contains("`\(table).authorities`: \(file.path) has 524289 bytes; at most 524288") == true)
    }
  }

  private func read(_ toml: String = "", plugins: [String: String]) throws -> Configuration {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    let inner = folder.appending(path: "authenticators.d")
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
    for (name, text) in plugins { try text.write(to: inner.appending(path: name), atomically: true, encoding: .utf8) }
    let file = folder.appending(path: "config.toml")
    try toml.write(to: file, atomically: true, encoding: .utf8)
    return try Configuration.read(file.path)
  }

  /// Fails if it counts as an empty one: requests then lack their authenticators.
  @Test("A folder of plug-ins that cannot be read is an error") func unreadableFolder() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for name in ["config.toml", "authenticators.d"] {
      try "".write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
    }
    let error = #expect(throws: CommandError.self) {
      _ = try Configuration.read(folder.appending(path: "config.toml").path)
    }
    #expect(error?.description.contains("authenticators.d: Not a directory") == true)
  }

  /// Fails if the service starts with the defaults, without an authenticator, or with a part of a password.
  @Test("A file that cannot be read is an error, and not empty") func unreadableFiles() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    let plugin = folder.appending(path: "authenticators.d/badge.toml")
    try FileManager.default.createDirectory(at: plugin, withIntermediateDirectories: true)
    let file = folder.appending(path: "config.toml")
    try "".write(to: file, atomically: true, encoding: .utf8)
    #expect {
      try Configuration.read(folder.path)
    } throws: {
      "\($0)" == "cannot read \(folder.path): Is a directory"
    }
    #expect {
      try Configuration.read(file.path)
    } throws: {
      "\($0)".hasSuffix("badge.toml: Is a directory")
    }
    let mqtt = "[mqtt]\nbroker = \"b\"\nusername = \"u\"\npassword_file = \"\(folder.path)\""
    let settings = try #require(try Configuration(parsing: mqtt, file: "f").mqtt)
    #expect {
      try settings.credentials()
    } throws: {
      "\($0)" == "cannot read \(folder.path): Is a directory"
    }
  }

  /// Fails if a part of the password is used.
  @Test("A password file of the broker that is too large is an error", arguments: [2000, 65_536])
  func longPassword(count: Int) throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }
    try String(repeating: "p", count: count).write(to: file, atomically: true, encoding: .utf8)
    let mqtt = "[mqtt]\nbroker = \"b\"\nusername = \"u\"\npassword_file = \"\(file.path)\""
    let settings = try #require(try Configuration(parsing: mqtt, file: "f").mqtt)
    #expect(((try? settings.credentials()) != nil) == (count < 65_536))
  }

  @Test("Plug-ins are read from the folder beside the configuration") func plugins() throws {
    let badge = "authenticator = \"badge\"\nsocket = \"/run/badge\""
    let configuration = try read(
      "[authenticators]\nsimulated = [\"voice\"]",
      plugins: ["b.toml": badge, "a.toml": "authenticator = \"hmac\"\ncommand = [\"/bin/cat\"]", "notes.txt": "?"])
    #expect(configuration.plugins.map(\.authenticator) == ["hmac", "badge"])
    let simulated = configuration.drivers(hasKeypad: false, simulated: SimulatedAuthenticators())
    // The socket is not there.
    #expect(simulated.usable(as: .custom) == ["hmac", "voice"])
    #expect(configuration.drivers(hasKeypad: false, simulated: nil).usable(as: .custom) == ["hmac"])
    #expect(simulated["badge"]?.isAvailable == false)
    for (text, reason) in [(badge + "\nx = 1", "a.toml: unknown key \"x\""), ("= =", "a.toml: not TOML")] {
      #expect {
        try read(plugins: ["a.toml": text])
      } throws: {
        "\($0)".contains(reason)
      }
    }
    #expect {
      try read("[authenticators]\nkeypad_codes = [\"badge\"]", plugins: ["a.toml": badge])
    } throws: {
      "\($0)" == "the authenticator \"badge\" is configured twice"
    }
  }

  @Test(
    "A mistake is named",
    arguments: [
      ("bord = \"b\"", "unknown key \"bord\""), ("[tls]\nverify = false", "unknown key \"tls.verify\""),
      ("board = 5", "must be a string"), ("[log]\ntext = true", "unknown key \"log.text\""),
      ("[display]\nfollows_watch = 1", "display.follows_watch"),
      ("[authenticators]\nkeypad_codes = [\"pin\"]", "authenticators.keypad_codes"),
      ("[authenticators]\nkeypad_codes = [\"..\"]", "authenticators.keypad_codes"),
      ("[authenticators]\nkeypad_codes = [\"A\"]", "authenticators.keypad_codes"),
      ("[authenticators]\nkeypad_codes = [\"a\", \"a\"]", "authenticators.keypad_codes"), ("= = =", "not TOML"),
      ("[push]\nidle_s = 10", "\"push.idle_s\" is now called \"push.idle_seconds\""),
      ("[push]\nlifetime_s = 10", "\"push.lifetime_s\" is now called \"push.lifetime_seconds\""),
      (
        "[mqtt]\nbroker = \"b\"\nuser = \"u\"\npassword_file = \"/p\"",
        "\"mqtt.user\" is now called \"mqtt.username\""
      ),
      ("[push]\nidle_seconds = 601", "it must be 2 to 600 s"), ("[push]\nfast_ms = 249", "it must be 250 to 30000 ms"),
    ])
  func aMistakeIsNamed(toml: String, reason: String) {
    #expect {
      try Configuration(parsing: toml, file: "f")
    } throws: { error in
      (error as? CommandError)?.code == .badData && "\(error)".contains(reason) && "\(error)".contains("f")
    }
  }
}
