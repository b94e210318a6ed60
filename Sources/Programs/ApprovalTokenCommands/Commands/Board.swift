// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
import FrontPanel
import MobileAuth

package struct BoardCommand: ParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "board", abstract: "List and check boards, propose a board profile, and explain the LED.",
    subcommands: [List.self, Check.self, Probe.self, Legend.self])

  package init() {}

  package struct List: DaemonCommand {
    package static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the board profiles that can be found.")

    @OptionGroup package var json: JSONOption

    package init() {}
  }

  package struct Legend: ParsableCommand {
    package static let configuration = CommandConfiguration(commandName: "legend", abstract: "Explain the LED.")

    private struct Row: Encodable {
      var meaning: String
      var pattern: String
      var color: String
    }

    @OptionGroup var json: JSONOption

    package init() {}

    package func run() throws {
      let rows = Indication.legend.map(\.row).map {
        Row(meaning: $0.meaning, pattern: $0.patternInWords, color: $0.color.rawValue)
      }
      try reporting(json) { json.print(rows) { _ in Indication.legendTable } }
    }
  }
}

extension BoardCommand {
  package struct Check: DaemonCommand {
    package static let configuration = CommandConfiguration(
      commandName: "check", abstract: "Check a board's profile, open its lines and keypad, and light each LED in turn.",
      discussion: """
        Stop the service first: only one process can use the lines and the keypad. Do not press the button meanwhile, \
        and watch the LED: switching a line does not prove that an LED is wired to it. The keypad is returned to the \
        console afterwards.

        Without a board, all installed profiles are parsed, and no device is opened. Exit code 1 if a check \
        fails, 65 if the profile is invalid.
        """)

    @Argument(
      help: "A name from `approval-token board list`, or a profile file.", completion: .file(extensions: ["toml"]))
    package var board: String?
    @OptionGroup package var json: JSONOption

    package init() {}
  }

  package struct Probe: DaemonCommand {
    package static let configuration = CommandConfiguration(
      commandName: "probe",
      abstract: "List this machine's GPIO chips, their lines and its keypads, and propose a profile.",
      discussion: """
        Opens no line and no keypad. Software cannot detect which line a button is wired to: check the proposal before \
        you use it:

          approval-token board probe --toml > board.toml
          approval-token board check board.toml
        """)

    @Flag(help: "Print only the proposed profile.")
    package var toml = false
    @OptionGroup package var json: JSONOption

    package init() {}

    package func validate() throws {
      if toml, json.isWanted { throw ValidationError("--toml and --json exclude each other") }
    }
  }
}
