// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
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
    #expect(context.keypadCodes == ["employee-number", "a.b_c"])
    #expect(try Configuration(parsing: "", file: "f").keypadCodes.isEmpty)
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
