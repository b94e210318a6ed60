// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import Glibc

struct Events: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events", abstract: "Print what happens to accounts, authenticators and requests, for programs.",
    discussion: """
      Prints at most 64 events of the recent past, or with --follow those from now on, until interrupted. With --json \
      each event is one line; docs/events.md explains the events, docs/schemas/events.schema.json their form. Exits with \
      69 when the service ends.
      """)

  @Flag(help: "Print the events from now on, until interrupted.")
  var follow = false
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try reporting(json) {
      try ControlClient(path: state.controlSocket).follow(
        .events(follow: follow), EventLine.self, within: follow ? nil : ControlClient.patience
      ) { line in
        json.print(line, text: \.text)
        // Flush each line: a pipe is fully buffered otherwise.
        try flushResults()
        return true
      }
      if follow { throw CommandError.endOfLines }
    }
  }
}

extension EventLine {
  fileprivate var text: String {
    let words = [event, server, account, transaction, authenticator, purpose, kind, decision, denialReason]
    let reason = failure.map { $0.reason + ($0.code.map { " (\($0))" } ?? "") }
    return (["\(sequence)"] + (words + [reason]).compactMap(\.self)).joined(separator: "  ")
  }
}
