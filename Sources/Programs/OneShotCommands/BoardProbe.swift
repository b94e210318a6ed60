// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import Boards
import ControlProtocol
import DisplayText
import MobileAuth

extension BoardCommand.Probe: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      let probe = BoardProbe.look()
      guard toml else {
        return json.print(probe) { probe in
          // The names come from devices and are not trusted.
          (probe.lines.map(\.sanitized) + [probe.profile.map { "\n\($0)" }].compactMap(\.self)).joined(
            separator: "\n")
        }
      }
      guard let profile = probe.profile else {
        throw CommandError(.unavailable, "no GPIO chip with lines for a button and an LED was found")
      }
      print(profile, terminator: "")
    }
  }
}
