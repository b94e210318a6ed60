// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import MobileAuth
import OneShotCommands
import Testing
import TokenDaemon

@testable import ApprovalTokenCommands

@Suite(.timeLimit(.minutes(5))) struct CommandTests {
  private static func all(below command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
    command.configuration.subcommands.flatMap { [$0] + all(below: $0) }
  }

  /// The daemon's program would start itself without end.
  @Test("The daemon's program performs each command that `approval-token` leaves to it") func allPerformed() {
    let left = Self.all(below: ApprovalTokenCommand.self).filter { $0 is any DaemonCommand.Type }
    #expect(left.count > 10)
    #expect(left.filter { !($0 is any OneShotCommand.Type) }.map { $0._commandName } == [])
  }

  /// A name that follows from the type's name changes with it.
  @Test("The commands have their documented names") func commandNames() {
    let names = ApprovalTokenCommand.configuration.subcommands.map { $0._commandName }
    #expect(names.contains("mailbox") && names.contains("otp") && !names.contains { $0.hasSuffix("command") })
  }

  /// Deriving a name from the type's name takes a tenth of a millisecond, for each command and at each start.
  @Test("Each command states its name") func statedNames() {
    #expect(Self.all(below: ApprovalTokenCommand.self).filter { $0.configuration.commandName == nil }.isEmpty)
  }

  @Test(
    "A service starts with the same options, with and without ArgumentParser",
    arguments: [
      ["serve"], ["device"], ["serve", "--board", "simulated", "--state", "/s", "--config", "c.toml"],
      ["device", "--relay", "r.sock", "--config", ""], ["device", "--state", "/s", "--relay", "r.sock"],
    ])
  func services(arguments: [String]) throws {
    let command = try #require(DaemonCommandLine.service(arguments))
    let parsed = try ApprovalTokenCommand.parseAsRoot(arguments)
    #expect(type(of: command) == type(of: parsed))
    let (own, other) = (options(of: command), options(of: parsed))
    #expect(own == other)
  }

  /// In the last one the option is that of another command.
  @Test(
    "ArgumentParser parses everything else",
    arguments: [
      [], ["status"], ["--help"], ["serve", "--help"], ["serve", "--board"], ["serve", "--board=simulated"],
      ["serve", "--board", "--state"], ["serve", "x"], ["serve", "--board", "a", "--board", "b"],
      ["device", "--relay", "-x"], ["device", "relay", "x"], ["serve", "--relay", "r.sock"],
    ])
  func notServices(arguments: [String]) { #expect(DaemonCommandLine.service(arguments) == nil) }

  private func options(of command: any ParsableCommand) -> [String?] {
    let device = command as? Device
    let options = device?.options ?? (command as? Serve)?.options
    return [options?.config, options?.board, options?.state.chosen, device?.relay]
  }

  /// How long "not me" is held depends on the board profile, which the service knows.
  @Test("The panel's key n holds as long as the board wants it") func panelKeyNotMe() {
    #expect(SimulatedInput(panelKey: "n") == .notMe)
    #expect(SimulatedInput(panelKey: "h") == .hold(milliseconds: 1000))
    #expect(SimulatedInput(panelKey: "7") == .keys(["7"]))
    #expect(SimulatedInput(panelKey: "q") == nil)
  }

  /// Fails if the line is shortened as others are.
  @Test("An error with long data is whole JSON, and safe to show") func longError() throws {
    let info = ScriptInfo(status: 4000, data: String(repeating: "\u{1B}", count: 4096))
    let line = errorLine(CommandError(.refused, "no", number: 9027, info: info), asJSON: true)
    #expect(line.utf8.allSatisfy { (0x20...0x7E).contains($0) })
    guard case .failure(let error) = try ControlResponse<Done>(line: Array(line.utf8)) else {
      Issue.record("not an error")
      return
    }
    #expect(error.info == info && error.number == 9027)
  }

  @Test("Messages for users have no error number") func messagesHaveNoNumber() {
    #expect(explanation(of: TokenServerError.unreachable("no route")) == "no route")
  }
}
