// SPDX-License-Identifier: Apache-2.0
import Boards
import GPIO
import Testing
import USBKeypad

@Suite("A profile of real hardware", .timeLimit(.minutes(5))) struct HardwareProfileTests {
  private static let base = """
    name = "b"
    description = "d"
    kind = "gpio"
    gpio.chips = ["pinctrl-rp1"]

    """
  private static let button = "button.line = 17\n"
  private static let light = "led = { colors = \"mono\", light = { line = 22 } }\n"

  private func refusal(_ toml: String) -> String? {
    do {
      _ = try BoardProfile(parsing: Self.base + toml, file: "f")
      return nil
    } catch { return error.why }
  }

  @Test("Says which line is which, and how it is wired") func saysWhichLineIsWhichAndHowItIsWired() throws {
    let toml = """
      button = { line = 17, name = "GPIO17", bias = "pull-up", debounce_ms = 10 }
      deny_button = { line = 27, active_low = false }
      led = { red = { line = 22 }, green = { line = 23, name = "GPIO23" }, blue = { line = 24, active_low = true } }
      buzzer = { line = 25, name = "GPIO25" }
      keypad = { kind = "usb", device = "1a2c:0E24", port = "1-1.2" }
      """
    let profile = try BoardProfile(parsing: Self.base + toml, file: "f")
    let lines = try #require(profile.lines)
    #expect(lines.chips == ["pinctrl-rp1"])
    #expect(
      lines.button
        == InputLine(offset: 17, name: "GPIO17", bias: .pullUp, isActiveLow: true, debounce: .milliseconds(10)))
    #expect(lines.denyButton == InputLine(offset: 27))
    #expect(
      lines.led == [
        OutputLine(offset: 22), OutputLine(offset: 23, name: "GPIO23"), OutputLine(offset: 24, isActiveLow: true),
      ])
    #expect(lines.buzzer == OutputLine(offset: 25, name: "GPIO25"))
    let usb = try #require(profile.keypad?.usb)
    #expect(usb.selection.identity?.vendor == 0x1A2C && usb.selection.identity?.product == 0x0E24)
    #expect(usb.selection.port == "1-1.2" && !usb.givesBack)
  }

  private static let wrong: [(String, String)] = [
    (light, "\"button.line\" is missing"),
    (button, "\"led.red.line\" is missing"),
    ("\(button)led.colors = \"mono\"", "\"led.light.line\" is missing"),
    ("button.line = 1024\n\(light)", "\"button.line\" must be a whole number from 0 to 1023"),
    ("button.line = \"GPIO17\"\n\(light)", "\"button.line\" must be a whole number"),
    ("button = { line = 1, bias = \"up\" }\n\(light)", "it can be \"as-is\", \"disabled\", \"pull-up\", \"pull-down\""),
    ("button = { line = 1, debounce_ms = 51 }\n\(light)", "it must be 1 to 50 ms"),
    ("button = { line = 1, active_low = 1 }\n\(light)", "\"button.active_low\" must be true or false"),
    ("button = { line = 1, pull = \"up\" }\n\(light)", "unknown key \"button.pull\""),
    ("\(button)\(light)buzzer.line = 17", "gives one line two uses: 17, 22, 17"),
    ("\(button)\(light)buzzer.tone = 440", "\"buzzer.line\" is missing"),
    ("button.line = 22\n\(light)", "gives one line two uses: 22, 22"),
    ("\(button)led = { colors = \"mono\", light = { line = 2 }, red = { line = 3 } }", "unknown key \"led.red\""),
    ("\(button)\(light)keypad.kind = \"simulated\"", "must be simulated on a simulated board, and there alone"),
    ("\(button)\(light)keypad = { kind = \"usb\", device = \"1a2c\" }", "\"keypad.device\" must be vendor and product"),
    ("\(button)\(light)keypad = { kind = \"usb\", device = \"1a2c:+e24\" }", "\"keypad.device\" must be"),
    ("\(button)\(light)keypad = { kind = \"usb\", port = \"usb1\" }", "\"keypad.port\" must be the bus and the ports"),
  ]

  @Test("Names a wrong key", arguments: wrong)
  func namesAWrongKey(toml: String, reason: String) throws {
    #expect(try #require(refusal(toml)).contains(reason))
  }

  @Test("Wants at least one label") func wantsAtLeastOneLabel() {
    for chips in ["[]", "[1]", "\"c\"", "[\"c\", 1]"] {
      let toml =
        "name = \"b\"\ndescription = \"d\"\nkind = \"gpio\"\ngpio.chips = \(chips)\n" + Self.button + Self.light
      #expect(throws: BoardProfile.ProfileError.self) { try BoardProfile(parsing: toml, file: "f") }
    }
  }

  @Test("Every profile that ships is one") func everyProfileThatShipsIsOne() throws {
    let all = BoardCatalog.all()
    #expect(all.count >= 10)
    for (file, result) in all {
      let profile = try result.get()
      #expect(file.hasSuffix("/\(profile.name)/board.toml"))
      #expect((profile.lines == nil) == (profile.kind == .simulated), "\(file)")
    }
  }
}
