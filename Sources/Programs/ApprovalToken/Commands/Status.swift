// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import JSONValues
import MobileAuth
import ServerBackends
import Vault

struct Status: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show whether the token is running and connected, and what its LED means.")

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      json.print(try status(), text: describe)
    }
  }

  private func status() throws -> ServiceStatus {
    do {
      return try ControlClient(path: state.controlSocket).call(ControlCall(request: .status), ServiceStatus.self)
    } catch let failure as CommandError where failure.code == .unavailable {
      // Without a running service, the accounts are read from the vault.
      let accounts = try state.openVault(creating: false).accountSummaries()
      return ServiceStatus(
        running: false, servers: [], accounts: accounts.count,
        mustEnroll: accounts.filter { $0.stage == .mustEnrollAgain }.count)
    }
  }

  private func describe(_ status: ServiceStatus) -> String {
    var lines = [
      status.running ? "running, process \(status.processID ?? 0)" : "not running: start `approval-token serve`"
    ]
    if let board = status.board {
      lines.append("board     \(board)\(status.isSimulated == true ? " (simulated)" : "")")
    }
    for trouble in status.troubles ?? [] { lines.append("TROUBLE   \(trouble)") }
    if let led = status.led { lines.append("LED       \(led.meaning)") }
    for server in status.servers { lines.append("server    \(server.server): \(server.connection)") }
    lines.append(
      "accounts  \(status.accounts)\(status.mustEnroll > 0 ? ", \(status.mustEnroll) must be enrolled again" : "")")
    for pin in status.pins ?? [] {
      lines.append(
        "PIN       \(pin.account): \(pin.previousFailureCount) wrong, \(pin.remainingFailureCount) of "
          + "\(pin.maxFailureCount) attempts left")
    }
    for account in status.lost ?? [] { lines.append("lost      \(account): removed from this token; enroll it again") }
    if let account = status.loggedIn { lines.append("logged in \(account)") }
    if let pending = status.pending { lines.append("pending   \(pending)") }
    if let panel = status.panel {
      let subject = panel.request.map { "request \($0)" } ?? "no request"
      lines.append(
        "panel     \(subject); a press \(panel.pressCounts ? "counts" : "counts for nothing: \(panel.reason ?? "")")")
    }
    for request in status.requests ?? [] {
      let choices = request.choiceList.map { "; choose what the portal shows: \($0)" } ?? ""
      let word = request.locked == nil ? "asked " : "locked"
      lines.append(
        "\(word)    \(request.account): \((request.message ?? request.type ?? "").sanitized(atMost: 1000))\(choices)")
    }
    for answer in status.unconfirmed ?? [] {
      lines.append("answered  \(answer.account): \(answer.server) has not confirmed it, request \(answer.transaction)")
    }
    for code in status.codes ?? [] {
      lines.append(
        "code      \(code.account): type \(code.code) into the portal. \(code.message.sanitized(atMost: 1000))")
    }
    return lines.joined(separator: "\n")
  }
}

struct Accounts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "List the accounts on this token.")

  private struct Response: Encodable {
    var account: String
    var server: String
    var url: String
    var profile: String
    var stage: String
    /// Why the account is locked; nil if it is not.
    var locked: String?

    init(_ account: AccountSummary, _ lock: AccountLock?) {
      self.account = account.id.text
      server = account.server.text
      url = account.url
      profile = account.profile
      stage = account.stage.rawValue
      locked = lock?.description
    }

    var line: String { [account, server, locked ?? stage].joined(separator: "  ") }
  }

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      let vault = try state.openVault(creating: false)
      let backends = Backends(vault)
      let accounts = try vault.accountSummaries().map { Response($0, backends.lock(ifReadable: $0.id)) }
      json.print(accounts) { accounts in
        accounts.isEmpty
          ? "no accounts yet: `approval-token enroll URI`"
          : accounts.map(\.line).joined(separator: "\n")
      }
    }
  }
}

struct Pending: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the pending requests, newest first.",
    discussion: """
      Asks the running service. The messages are written by portals and are not verified. Exits with 69 if a token \
      server is not reachable: its listed requests may have ended ("stale" with --json), and newer ones may be missing.
      """)

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      let facts = try ControlClient(path: state.controlSocket).call(
        ControlCall(request: .pending), PendingResponse.self)
      json.print(facts.requests) { pending in
        pending.isEmpty
          ? "nothing is pending"
          : pending.map(describe).joined(separator: "\n")
      }
      guard facts.unreachable.isEmpty else {
        throw CommandError(
          .unavailable,
          "not connected to \(facts.unreachable.joined(separator: ", ")): this is the last known list, and may have "
            + "changed")
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

private func describe(_ request: PendingSummary) -> String {
  let choices = request.choiceList.map { "  choices: \($0)" } ?? ""
  let locked = request.locked.map { "  \($0)" } ?? ""
  let context = request.context.map { "  login from: \(($0.text ?? $0.canonical).sanitized(atMost: 1000))" } ?? ""
  let panel = request.isOnPanel ? "  on the panel\(request.pressCounts ? "" : ", a press does not count yet")" : ""
  let stale = request.isStale ? "  stale: its server is not connected" : ""
  return "\(request.transaction)  \(request.account)  \((request.type ?? "-").sanitized(atMost: 1000))  "
    + "\(request.expiresInSeconds) s left  "
    + "\((request.message ?? "").sanitized(atMost: 1000))\(choices)\(locked)\(context)"
    + "\(panel)\(stale)"
}
