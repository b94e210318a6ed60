// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// `kill -9` of the token at random times of a registration and of uses of a custom authenticator: none is half
  /// registered, no attempt is given back, and nothing costs an attempt of the PIN.
  @Suite struct AuthenticatorPowerLosses {
    private static let dice = Dice.fresh()
    /// The number of lanes, each with its own token server and token, and the number of registrations in each.
    private static let (laneCount, rounds) = (4, 3)
    private static let lanes = Lanes(laneCount)

    @Test("A killed token has no half of a registration, and gives back no attempt", arguments: 0..<laneCount)
    func neitherHalfNorGivenBack(lane: Int) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      var tally: [String: Int] = [:]
      try await withPINScene(
        settings: "max_pin_attempts = 3\ncustom_authenticators = true", types: AuthenticatorTrial.types,
        configuration: { _ in "[authenticators]\nsimulated = [\"\(AuthenticatorTrial.id)\"]\n" }
      ) { fixture in
        let trial = AuthenticatorTrial(fixture: fixture)
        for round in 1...Self.rounds {
          do {
            // One kill is late in every run: else, by chance, each could come before the registration.
            try await trial.register(&tally, &dice, isKilledLate: lane == 0 && round == 1)
            try await trial.useUp(&tally, &dice)
          } catch {
            Issue.record("seed \(Self.dice.seed), lane \(lane), round \(round): \(error)")
            throw error
          }
        }
        #expect(try await fixture.server.pinFailures() == 0)
      }
      print("cuts with seed \(Self.dice.seed), lane \(lane): \(tally)")
      // If all kills had the same outcome, their times were wrong.
      if let all = Self.lanes.end(with: tally) { #expect(all.count == 4, "\(all)") }
    }
  }
}

/// The life of one registration, with kills.
private struct AuthenticatorTrial {
  static let id = "employee-number"
  /// The default of `max_failures`.
  private static let limit = 3
  private static let right = "4711"
  private static let wrong = "9999"

  static let types = """
    [[authenticator]]
    id = "\(id)"
    name = "Employee number"
    kind = "custom"
    scripts = "\(scripts)"
    time_limit_seconds = 60
    [[type]]
    name = "transfer"
    method = "push_with_custom_authenticator"
    request_expires_in = 600

    """
  private static let scripts =
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "examples/employee-number").path

  let fixture: EndToEndFixture

  private var token: TestToken { fixture.token }

  private struct List: Decodable {
    struct Item: Decodable {
      let identifier: String
      let registered: Bool
    }

    let authenticators: [Item]
  }

  private func isRegisteredHere() async throws -> Bool {
    let list = try await token.command("authenticators", "alice", "--json").succeeded().decoded(List.self)
    return list.authenticators.contains { $0.identifier == Self.id && $0.registered }
  }

  private func isRegisteredThere() async throws -> Bool {
    try await fixture.server.account()?.authenticators == [Self.id]
  }

  /// Waits until token and server agree.
  /// - Returns: whether the authenticator is registered.
  private func agreement() async throws -> Bool {
    try await eventually("token and server agree") {
      let here = try await isRegisteredHere()
      return try await isRegisteredThere() == here ? here : nil
    }
  }

  private func answer(_ data: String) async throws {
    try await token.shows("number or other data wanted")
    try await token.presentWhenAsked(.init(data: data))
  }

  private func killed() async throws {
    try await token.kill9()
    try await token.startConnected()
  }

  // MARK: Registration

  private func beginRegistration() throws -> (command: ChildProcess, user: Task<Void, any Error>) {
    let command = try token.begin("authenticator", "register", "alice", Self.id)
    let user = Task {
      try await token.type("13589")
      try await token.asks("confirmation wanted")
      try await token.perform(.hold)
      try await answer(Self.right)
    }
    return (command, user)
  }

  /// Registers, with a kill; then without one, if that was in vain.
  /// - Parameter isKilledLate: whether the kill comes when the server has registered.
  func register(_ tally: inout [String: Int], _ dice: inout Dice, isKilledLate: Bool) async throws {
    let mark = try fixture.server.log.mark
    let (command, user) = try beginRegistration()
    switch Int.random(in: isKilledLate ? 3..<5 : 0..<5, using: &dice) {
    case 0: try await Task.sleep(for: dice.milliseconds(0...2500))
    case 1...2:
      try await user.finished(within: .seconds(180))
      try await Task.sleep(for: dice.milliseconds(0...150))
    default:
      try await fixture.server.log.line(with: "\(Self.id) of profile", " is registered", from: mark)
      try await Task.sleep(for: dice.milliseconds(0...15))
    }
    try await token.kill9()
    user.cancel()
    _ = try? await user.finished(within: .seconds(180))
    let outcome = try await command.outcome()
    try await token.startConnected()
    let isRegistered = try await agreement()
    if outcome.exit == .code(0), !isRegistered { throw ViolationError(description: "it was said to be registered") }
    tally[isRegistered ? "registered" : "not registered", default: 0] += 1
    guard !isRegistered else { return }
    let again = try beginRegistration()
    try await again.user.finished(within: .seconds(180))
    try await again.command.outcome().succeeded()
    guard try await agreement() else { throw ViolationError(description: "it cannot be registered again") }
    // No user is logged in, as after a kill.
    try await killed()
  }

  private struct ViolationError: Error, CustomStringConvertible {
    let description: String
  }

  // MARK: Use

  /// Answers wrong, with a kill each, until the server has deregistered the authenticator: after exactly as many
  /// verified attempts as without kills. The server's line about an attempt comes after its commit, so that only the
  /// sum is certain.
  func useUp(_ tally: inout [String: Int], _ dice: inout Dice) async throws {
    let before = attempts
    var entries = 0
    while entries < 30, try await isRegisteredThere() {
      try await useWrongly(&dice)
      entries += 1
      guard attempts - before <= entries else {
        throw ViolationError(description: "\(attempts - before) attempts with \(entries) entries")
      }
    }
    guard try await !agreement() else {
      throw ViolationError(description: "still registered after \(attempts - before) attempts")
    }
    _ = try await eventually("\(Self.limit) attempts") { attempts - before >= Self.limit ? true : nil }
    guard attempts - before == Self.limit else {
      throw ViolationError(description: "deregistered after \(attempts - before) attempts")
    }
    tally["wrong", default: 0] += Self.limit
    if entries > Self.limit { tally["untouched", default: 0] += entries - Self.limit }
    try await fixture.expectApproval(typing: "13589")
  }

  /// The number of attempts that the server has verified, and those that it has counted without a result.
  private var attempts: Int { fixture.server.logged(": wrong") + fixture.server.logged(": the script gave no result") }

  private func useWrongly(_ dice: inout Dice) async throws {
    let transaction = try await fixture.askForPIN(type: "transfer")
    let process = try token.running
    let user = Task { try await answer(Self.wrong) }
    switch Int.random(in: 0..<5, using: &dice) {
    case 0: try await Task.sleep(for: dice.milliseconds(0...900))
    case 1...2:
      try await user.finished(within: .seconds(180))
      try await Task.sleep(for: dice.milliseconds(0...200))
    default:
      try await process.errors.line(with: "decided request \(transaction)")
      try await Task.sleep(for: dice.milliseconds(0...200))
    }
    try await token.kill9()
    user.cancel()
    _ = try? await user.finished(within: .seconds(180))
    try await token.startConnected()
    if try await fixture.portal.result(of: transaction).isAuthenticated {
      throw ViolationError(description: "approved with a wrong number")
    }
    try await fixture.portal.cancel(transaction)
    try await token.log.line(with: "settled request \(transaction)")
    // The script of an attempt may run longer than its request.
    _ = try await eventually("no attempt is being verified") {
      try await fixture.server.rowCount(of: "authenticator_attempt") == 0 ? true : nil
    }
  }
}
