// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
package import ControlProtocol
import DisplayText
import JSONValues
import MobileAuth

package struct Status: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show whether the token is running and connected, and what its LED means.",
    discussion: """
      Exits with 69 if no service runs; the accounts are then read from the vault, if it can be opened. Exits with 64 \
      without --state if a service is installed that uses another directory, and there is no token in the default one.
      """)

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}

  package func run() throws {
    try reporting(json) {
      guard let status = try fromService() else { try OtherProgram.daemon.start() }
      try show(status)
    }
  }

  /// Asks the service; nil if none runs.
  /// - Throws: `CommandError`, also if a service runs that does not answer: it is busy, or ends.
  package func fromService() throws -> ServiceStatus? {
    do { return try state.serviceStatus() } catch let failure as CommandError where failure.isServiceMissing {
      return nil
    }
  }

  /// Prints the status.
  /// - Throws: the exit code 69 if no service runs.
  package func show(_ status: ServiceStatus) throws {
    json.print(status, text: describe)
    guard status.running else { throw ExitCode(CommandError.Code.unavailable.rawValue) }
  }

  func describe(_ status: ServiceStatus) -> String {
    var lines = [
      status.running ? "running, process \(status.processID ?? 0)" : "not running: \(status.remedy ?? "")"
    ]
    if let board = status.board {
      lines.append("board     \(board)\(status.isSimulated == true ? " (simulated)" : "")")
    }
    if status.isStopping == true { lines.append("stopping  after the answer at the panel") }
    for trouble in status.troubles ?? [] { lines.append("TROUBLE   \(trouble)") }
    if let led = status.led { lines.append("LED       \(led.words)") }
    for server in status.servers { lines.append("server    \(server.server): \(server.connection)") }
    lines.append("accounts  \(accounts(of: status))")
    for pin in status.pins ?? [] {
      lines.append(
        "PIN       \(pin.account): \(pin.previousFailureCount) wrong, \(pin.remainingFailureCount) of "
          + "\(pin.maxFailureCount) attempts left")
    }
    for account in status.lost ?? [] {
      lines.append(
        "lost      \(account): must be enrolled again; `approval-token accounts` says how, if it still lists it")
    }
    if let account = status.loggedIn { lines.append("logged in \(account)") }
    if let pending = status.pending { lines.append("pending   \(pending)") }
    if let panel = status.panel {
      let obstacle = panel.obstacle.map { ", can only be denied: \($0.sanitized(atMost: 500))" } ?? ""
      let press = panel.pressCounts ? "counts" : "is ignored: \(panel.reason ?? "")"
      lines.append("panel     " + (panel.request.map { "request \($0)\(obstacle); a press \(press)" } ?? "no request"))
    }
    for request in status.requests ?? [] {
      let choices = request.choiceList.map { "; choose what the portal shows: \($0)" } ?? ""
      let word = request.locked == nil ? "asked " : "locked"
      lines.append(
        "\(word)    \(request.account): \((request.message ?? request.type ?? "").sanitized(atMost: 1000))\(choices)")
      lines += request.verified?.lines ?? []
    }
    for answer in status.unconfirmed ?? [] {
      lines.append("answered  \(answer.account): \(answer.server) has not confirmed it, request \(answer.transaction)")
    }
    for code in status.codes ?? [] {
      lines.append(
        "code      \(code.account): type \(code.code) into the portal within \(code.expiresInSeconds) s. "
          + code.message.sanitized(atMost: 1000))
    }
    return lines.joined(separator: "\n")
  }

  private func accounts(of status: ServiceStatus) -> String {
    guard let accounts = status.accounts else { return "unknown: \(status.accountsUnknown ?? "")" }
    let lost = status.mustEnroll ?? 0
    return "\(accounts)" + (lost > 0 ? ", \(lost) must be enrolled again" : "")
  }
}

package struct Accounts: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "accounts", abstract: "List the accounts on this token.")

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}
}

struct Pending: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pending", abstract: "List the pending requests, newest first.",
    discussion: """
      Asks the running service. The messages are written by portals. The text of the request on the panel is printed \
      again, marked with "verified", as the token server has signed it. Exits with 69 if a token \
      server is not reachable: its listed requests may have ended ("stale" with --json), and newer ones may be missing.
      """)

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try reporting(json) {
      let response = try ControlClient(path: state.controlSocket).call(
        .pending, PendingResponse.self, within: ControlClient.patience)
      json.print(response.requests) { pending in
        pending.isEmpty
          ? "nothing is pending"
          : pending.flatMap { [$0.line] + ($0.verified?.lines ?? []) }.joined(separator: "\n")
      }
      guard response.unreachable.isEmpty else {
        throw CommandError(
          .unavailable,
          "not connected to \(response.unreachable.joined(separator: ", ")): this is the last known list, and may have "
            + "changed", number: response.number)
      }
    }
  }
}

extension PendingSummary {
  /// The keys and options for display, such as "1 dark blue, 2 green".
  fileprivate var choiceList: String? {
    choices.map { $0.map(\.description).joined(separator: ", ").sanitized(atMost: 1000) }
  }
}

extension PendingSummary {
  /// One line for a terminal.
  var line: String { line(saysWhetherPressCounts: true) }

  /// - Parameter saysWhetherPressCounts: false where the line is not updated when that changes.
  func line(saysWhetherPressCounts: Bool) -> String {
    let choices = choiceList.map { "  choices: \($0)" } ?? ""
    let locked = self.locked.map { "  \($0)" } ?? ""
    let context = self.context.map { "  login from: \(($0.text ?? $0.canonical).sanitized(atMost: 1000))" } ?? ""
    let panel =
      isOnPanel ? "  on the panel\(pressCounts || !saysWhetherPressCounts ? "" : ", a press does not count yet")" : ""
    let obstacle = self.obstacle.map { "  can only be denied: \($0.sanitized(atMost: 500))" } ?? ""
    let stale = isStale ? "  stale: its server is not connected" : ""
    return "\(transaction)  \(account)  \((type ?? "-").sanitized(atMost: 1000))  "
      + "\(expiresInSeconds) s left  "
      + "\((message ?? "").sanitized(atMost: 1000))\(choices)\(locked)\(context)"
      + "\(panel)\(obstacle)\(stale)"
  }
}
