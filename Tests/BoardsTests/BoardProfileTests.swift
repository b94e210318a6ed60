// SPDX-License-Identifier: Apache-2.0
import Boards
import FrontPanel
import Testing

@Suite(.timeLimit(.minutes(5))) struct BoardProfileTests {
  private let base = "name = \"b\"\ndescription = \"d\"\nkind = \"simulated\"\n"

  private func refusal(_ toml: String) -> String? {
    do {
      _ = try BoardProfile(parsing: toml, file: "f")
      return nil
    } catch { return error.description }
  }

  @Test("The shipped simulated board is the default") func theShippedSimulatedBoardIsTheDefault() throws {
    let profile = try BoardCatalog.profile("simulated")
    #expect(profile.kind == .simulated)
    #expect(profile.timing == GestureTiming())
    #expect(profile.keypad?.entry == EntrySettings())
    #expect(try BoardProfile(parsing: base, file: "f").timing == GestureTiming())
  }

  @Test(
    "A profile that lacks something says what",
    arguments: [
      ("", "\"name\" is missing"),
      ("name = 1", "\"name\" must be a string"),
      ("name = \"b\"\ndescription = \"d\"\nkind = \"real\"", "it can be \"simulated\", \"gpio\""),
      ("name = [", "not TOML"),
      ("name = \"a\\u001B[2J\"\ndescription = \"d\"", "\"name\" must be one line without control characters"),
      ("name = \"b\"\ndescription = \"d\\nok\"", "\"description\" must be one line without control characters"),
      // Without `TOMLSyntax`, the process would end here.
      ("name = \"b\"\n[\u{FC}nits]", "not TOML: line 2"),
    ])
  func aProfileThatLacksSomethingSaysWhat(toml: String, reason: String) throws {
    #expect(try #require(refusal(toml)).contains(reason))
  }

  @Test(
    "A wrong key is named",
    arguments: [
      ("[gestures]\naccept_hold = 1", "unknown key \"gestures.accept_hold\""),
      ("[gestures]\naccept_hold_ms = 499", "it must be 500 to 3000 ms"),
      ("[gestures]\nguard_time_ms = 0", "it must be 300 to 5000 ms"),
      ("[gestures]\nstuck_ms = \"long\"", "must be a whole number"),
      ("[led]\ncolors = \"pink\"", "it can be \"mono\", \"rgb\""),
      ("[led]\ncolours = \"rgb\"", "\"led.colours\" is now called \"led.colors\""),
      ("[keypad]", "\"keypad.kind\" is missing"),
      ("[keypad]\nkind = \"ps2\"", "\"keypad.kind\" is \"ps2\"; it can be \"simulated\", \"usb\""),
      (
        "[keypad]\nkind = \"simulated\"\nentry_idle_s = 30",
        "\"keypad.entry_idle_s\" is now called \"keypad.entry_idle_seconds\""
      ),
      ("[keypad]\nkind = \"simulated\"\nentry_idle_seconds = 4", "it must be 5 to 120 s"),
      ("[keypad]\nkind = \"simulated\"\nentry_idle_seconds = 121", "it must be 5 to 120 s"),
      ("[keypad]\nkind = \"simulated\"\nfeedback = \"each-digit\"", "it can be \"entering\", \"each-key\""),
      ("[keypad]\nkind = \"simulated\"\nscrypt_log2_n = 13", "must be a whole number from 14 to 17"),
      ("[keypad]\nkind = \"simulated\"\nscrypt_log2_n = 18", "must be a whole number from 14 to 17"),
      ("[keypad]\nkind = \"simulated\"\nbeep = true", "unknown key \"keypad.beep\""),
      ("keypad = true", "\"keypad\" must be a table"),
      ("[buttons]\npin = 17", "unknown key \"buttons\""),
      ("[gestures]\nreport_hold_ms = 9223372036854775808", ""),
    ])
  func aWrongKeyIsNamed(addition: String, reason: String) throws {
    #expect(try #require(refusal(base + addition)).contains(reason))
  }

  @Test(
    "A misspelt key is met with the one that was meant",
    arguments: [
      ("[gestures]\naccept_hold = 1", "nearest is \"gestures.accept_hold_ms\""),
      ("[keypad]\nkind = \"simulated\"\nfeedbak = \"entering\"", "nearest is \"keypad.feedback\""),
      ("[keypads]\nkind = \"simulated\"", "nearest is \"keypad\""),
      ("[keypad]\nkin = \"simulated\"", "\"keypad.kind\" is missing; is \"keypad.kin\" a misspelling of it?"),
      ("[keypad]\nentry_idle_seconds = 30", "\"keypad.kind\" is missing"),
    ])
  func aMisspeltKeyIsMetWithTheOneThatWasMeant(addition: String, reason: String) throws {
    let said = try #require(refusal(base + addition))
    #expect(said.contains(reason), "\(said)")
    #expect(said.contains("meant to be") == reason.contains("meant to be"))
  }

  @Test("A board has a keypad only if its profile says so") func aBoardHasAKeypadOnlyIfItsProfileSaysSo() throws {
    #expect(try !BoardProfile(parsing: base, file: "f").hasKeypad)
    let table = "[keypad]\nkind = \"simulated\"\nentry_idle_seconds = 120\nfeedback = \"each-key\""
    let keypad = try #require(try BoardProfile(parsing: base + table, file: "f").keypad)
    #expect(keypad.kind == .simulated)
    #expect(keypad.entry.idle == .seconds(120))
    #expect(keypad.entry.feedback == .eachKey)
  }

  @Test("An unknown board says where it was looked for") func anUnknownBoardSaysWhereItWasLookedFor() {
    #expect {
      try BoardCatalog.profile("toaster")
    } throws: { error in
      "\(error)".contains("no board \"toaster\"") && "\(error)".contains("/etc/approval-token/boards")
    }
  }
}
