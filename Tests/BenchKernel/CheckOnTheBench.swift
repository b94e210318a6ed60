// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import BuiltPrograms
import GPIO
import Glibc
import Testing

/// `board check` and `board probe`, as used during the wiring of a board.
@Suite("A look at a board on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(3)))
final class CheckOnTheBench {
  private let bench: Bench
  private let board = "boards/bench-kernel/board.toml"

  init() async throws {
    bench = try Bench()
    guard system("panel plug composite") == 0 else { throw BenchError(what: "panel plug") }
    _ = try await eventually("a keypad") { try shell("token board probe").output.contains("1d6b:0104") ? true : nil }
  }

  deinit { _ = system("panel unplug") }

  @Test("Finds no fault in correct wiring, and lights every LED") func findsNoFaultInCorrectWiringAndLightsEveryLED()
    async throws
  {
    let voltmeter = Voltmeter(bench)
    let outcome = try shell("token board check \(board)")
    let seen = voltmeter.stop()
    #expect(outcome.status == 0, "\(outcome)")
    let subjects = ["profile", "chip", "button", "deny_button", "led.red", "led.green", "led.blue", "buzzer", "keypad"]
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.map { $0.split(separator: ":")[0] } == subjects.map { "ok    \($0)" }, "\(outcome)")
    #expect(outcome.output.contains("keypad: 1d6b:0104 at 1-1"))
    #expect(seen.contains([]))
    #expect(Set(seen.joined()) == [.red, .green, .blue, .buzzer], "\(seen)")
    // Everything is restored: no line is requested, and the console has its keypad.
    #expect(try describeChips()[0].get().lines.allSatisfy { $0.consumer == nil })
    _ = try await eventually("the keypad at the console") {
      try contents("/proc/bus/input/devices").contains("Bench keypad") ? true : nil
    }
  }

  @Test("Names each fault and its remedy") func namesEachFaultAndItsRemedy() async throws {
    let intruder = LineBank(
      chip: [Bench.label], inputs: [], outputs: [OutputLine(offset: 3)], consumer: "intruder"
    ) { _, _ in }
    _ = try await eventually("the intruder's line") { intruder.trouble == nil ? true : nil }
    try bench.press(.deny)
    #expect(try shell("panel unplug").status == 0)
    _ = try await eventually("an empty bus") {
      try shell("token board probe").output.contains("no keypad") ? true : nil
    }
    let wrong = try shell(
      "sed 's/GREEN/GRUEN/; s/as-is/as-is/; s/line = 4/line = 6/; /DENY/,/bias/s/pull-up/as-is/' \(board) >/run/wrong.toml; "
        + "token board check /run/wrong.toml")
    #expect(wrong.status == 1)
    for said in [
      "BAD   deny_button: line 1 is active: the button seems to be held\n      release the button",
      "BAD   led.green: line 3 of GPIO chip bench-panel is called \"GREEN\", not \"GRUEN\"\n      check the wiring",
      "BAD   led.blue: GPIO chip bench-panel has no line 6, its last is 5\n      `approval-token board probe` lists",
      "BAD   keypad: no keypad is plugged in that is 1d6b:0104\n      plug it in",
    ] { #expect(wrong.output.contains(said), "\(wrong)") }
    let busy = try shell("token board check \(board) --json")
    #expect(busy.status == 1)
    #expect(busy.output.contains("is in use by \\\"intruder\\\""), "\(busy)")
    intruder.close()
    try bench.removeChip()
    let none = try shell("token board check \(board)")
    #expect(none.status == 1)
    #expect(none.output.contains("BAD   chip: no GPIO chip has the label \"bench-panel\"; no GPIO chip is present"))
    let probe = try shell("token board probe; token board probe --toml")
    #expect(probe.status == 69 && probe.output.hasPrefix("no GPIO chip\nno keypad\n"), "\(probe)")
  }

  @Test("Rejects a profile with an unknown key, naming its place and the nearest key")
  func rejectsAProfileWithAnUnknownKeyNamingItsPlaceAndTheNearestKey() throws {
    let outcome = try shell("sed 's/^bias/biass/' \(board) >/run/wrong.toml; token board check /run/wrong.toml")
    #expect(outcome.status == 65)
    #expect(
      outcome.output.contains("/run/wrong.toml: unknown key \"button.biass\"; nearest is \"button.bias\""), "\(outcome)"
    )
  }

  @Test("Proposes a profile that passes its check") func proposesAProfileThatPassesItsCheck() throws {
    let probe = try shell("token board probe")
    for said in [
      "label \"bench-panel\", 6 lines", "line 5  \"BUZZER\"", "keypad  1d6b:0104 at 1-1  boot keyboard",
      "looks like the board bench-kernel",
    ] { #expect(probe.output.contains(said), "\(probe)") }
    #expect(try shell("token board probe --json | python3 -m json.tool").status == 0)
    let known = try shell("token board probe --toml >/run/a.toml && token board check /run/a.toml")
    #expect(known.status == 0, "\(known)")
    // A chip without a known profile, whose lines have descriptive names.
    let unknown = try shell(
      "export APPROVAL_TOKEN_BOARDS=/nowhere; "
        + "mkdir -p /run/away; cp $(readlink -f \(try BuiltProgram.path("approval-token"))"
        + " \(try BuiltProgram.path("approval-tokend"))) /run/away; "
        + "/run/away/approval-token board probe --toml >/run/b.toml && token board check /run/b.toml && cat /run/b.toml"
    )
    #expect(unknown.status == 0, "\(unknown)")
    #expect(unknown.output.contains("Proposed by") && !unknown.output.contains("bench-kernel"), "\(unknown)")
  }
}
