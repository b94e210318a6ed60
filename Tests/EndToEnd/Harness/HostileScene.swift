// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness

/// A connected token with a program in place of its network process.
struct HostileScene {
  /// The share of orders that are answered by a trick while attacks go on.
  static let share = 0.5

  let fixture: EndToEndFixture
  let hostile: HostileNetwork
  /// Where the program listens.
  private let path: String

  /// Puts the program in place of the network process of a split token. It plays no trick yet.
  init(_ fixture: EndToEndFixture, _ dice: Dice) async throws {
    self.fixture = fixture
    try await fixture.token.stop()
    path = fixture.folder.file("hostile.relay")
    hostile = try HostileNetwork(at: path, before: fixture.token.relayPath, dice: dice)
    try await startDevice()
    try await fixture.token.log.line(with: "] connected to")
  }

  private func startDevice() async throws { try await fixture.token.startDevice(at: path) }

  /// Replaces the device process. The pauses between the attempts of the new one are short.
  func restart() async throws {
    try await fixture.token.kill9()
    // The program ends within a second what it carries out of former orders.
    try await Task.sleep(for: .seconds(1))
    try await startDevice()
  }

  /// Ends the attacks, and with a new device process what is left of them.
  func calm() async throws {
    hostile.share = 0
    try await restart()
    try await fixture.token.log.line(with: "] connected to")
  }

  /// Starts a request under attack, and waits until the panel takes an answer to it. If it does not come to the panel,
  /// the attacks pause until it does. A request that the token cannot open, because it was changed, is denied by the
  /// token: another one takes its place.
  func ask(type: String = "login") async throws -> String {
    for _ in 1...5 {
      hostile.share = Self.share
      let transaction = try await fixture.ask(type: type)
      if try await bring(transaction) == .asked { return transaction }
    }
    throw OutputTimeoutError(description: "a request on the panel, of five")
  }

  /// Starts requests under attack until one is decided.
  /// - Returns: the request, and how often the user has acted for it.
  func askUntilDecided(
    type: String = "login", by act: () async throws -> Void
  ) async throws -> (transaction: String, acts: Int) {
    for _ in 1...5 {
      let transaction = try await ask(type: type)
      if let acts = try await decide(transaction, by: act) { return (transaction, acts) }
    }
    throw OutputTimeoutError(description: "a decision about one of five requests")
  }

  /// Acts at the panel when it takes an answer to the request, until the token has decided the request, at most three
  /// times.
  /// - Returns: how often; nil if the request has ended without a decision.
  func decide(_ transaction: String, by act: () async throws -> Void) async throws -> Int? {
    let former = try await decisions(about: transaction)
    for count in 1...3 {
      switch try await bring(transaction, unlessDecidedSince: former) {
      case .asked: try await act()
      case .decided: return count - 1
      case .ended: return nil
      }
      let decided = "decided request \(transaction)"
      if (try? await fixture.token.log.line(with: decided, within: .seconds(5))) != nil { return count }
    }
    throw OutputTimeoutError(description: "a decision about \(transaction)")
  }

  private enum Stage { case asked, decided, ended }

  /// Waits until the panel takes an answer to the request, there is another decision about it, or it has ended.
  /// - Parameter former: the number of decisions about the request so far.
  private func bring(_ transaction: String, unlessDecidedSince former: Int = 0) async throws -> Stage {
    let asked: Void? = try? await eventually("\(transaction) on the panel", within: .seconds(4)) {
      try await isAsked(transaction) ? () : nil
    }
    if asked != nil { return .asked }
    let share = hostile.share
    try await calm()
    defer { hostile.share = share }
    do {
      return try await eventually("\(transaction) on the panel without attacks") {
        if try await isAsked(transaction) { return .asked }
        if try await decisions(about: transaction) > former { return .decided }
        // An answer that was lost to the token can be late at the server.
        let result = try await fixture.portal.result(of: transaction)
        return result.isAuthenticated || result.reason != nil ? .ended : nil
      }
    } catch {
      let tail = try fixture.token.log.lines.suffix(12).map { "\n    \($0)" }.joined()
      throw OutputTimeoutError(description: "\(error)\(tail)")
    }
  }

  private func isAsked(_ transaction: String) async throws -> Bool {
    try await fixture.token.pendingRequests().contains { $0.transaction == transaction && $0.pressCounts }
  }

  private func decisions(about transaction: String) async throws -> Int {
    try await fixture.token.audit(of: transaction).count { $0.kind == "decided" }
  }
}
