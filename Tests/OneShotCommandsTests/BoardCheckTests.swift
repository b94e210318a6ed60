// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import Testing

@testable import OneShotCommands

@Suite(.timeLimit(.minutes(1))) struct BoardCheckTests {
  /// Fails if the name of a line's user can look like another result, or control the terminal.
  @Test("What a profile or a device says is shown in its line, without control characters") func untrusted() {
    let response = BoardCommand.Check.Response(
      subject: "led.red", good: false, text: "in use by \"a\u{1B}[2J\nok    b\"", next: "remove\u{202E}\r it")
    #expect(
      response.lines == [
        "BAD   led.red: in use by \"a\u{FFFD}[2J\u{FFFD}ok    b\"", "      remove\u{FFFD}\u{FFFD} it",
      ])
    let good = BoardCommand.Check.Response(subject: "button", good: true, text: "line 1, up", next: nil)
    #expect(good.lines == ["ok    button: line 1, up"])
  }
}
