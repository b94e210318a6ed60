// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import Glibc

struct Watch: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print each request that the panel shows, with its verified text, until interrupted.",
    discussion: """
      For a serial console or another display. The first line says what is on the panel now. Lines marked with \
      "verified" are signed by the token server. With --json each change is one line: "event" is idle, shown or ended, \
      "request" is as in `pending --json`. Exits with 69 when the service ends.
      """)

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try reporting(json) {
      try ControlClient(path: state.controlSocket).follow(.watch, PanelChange.self) { change in
        json.print(change) { $0.lines.joined(separator: "\n") }
        // Flush each line: a pipe is fully buffered otherwise.
        try flushResults()
        return true
      }
      throw CommandError.endOfLines
    }
  }
}

extension PanelChange {
  fileprivate var lines: [String] {
    guard let request else { return ["\(event)  \([transaction, reason].compactMap(\.self).joined(separator: "  "))"] }
    return ["\(event)  \(request.line(saysWhetherPressCounts: false))"] + (request.verified?.lines ?? [])
  }
}
