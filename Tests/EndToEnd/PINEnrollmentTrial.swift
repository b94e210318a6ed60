// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness

/// One activation with a PIN, one kill, and the same URI again: the account has exactly one PIN, and it is known which.
struct PINEnrollmentTrial {
  let fixture: EndToEndFixture
  let user: String

  private enum Cut {
    case sinceBegun(Duration)
    /// After the command printed that it begins this step.
    case after(String, Duration)

    static func random(using dice: inout Dice) -> Cut {
      switch Int.random(in: 0..<6, using: &dice) {
      case 0: .sinceBegun(dice.milliseconds(0...1500))
      case 1...3: .after("setting the PIN", dice.milliseconds(0...400))
      case 4: .after("exchanging keys", dice.milliseconds(0...40))
      default: .after("enrolling for push", dice.milliseconds(0...40))
      }
    }
  }

  func run(_ model: inout PINModel, _ dice: inout Dice) async throws {
    let server = fixture.server
    let (first, second) = (dice.pin(), dice.pin())
    let cut = Cut.random(using: &dice)
    try await server.addUser(user)
    let uri = try await server.activation(for: user)
    let devices = try await server.devices().count
    let token = TestToken(state: fixture.folder.file(user), board: fixture.folder.file("board.toml"))
    defer { token.end() }
    try await token.start()
    let enrollment = try token.begin("enroll", uri, "--name", user)
    let typing = Task {
      try await token.type(first, when: .newPIN)
      try await token.asks(Wanted.newPINAgain.rawValue)
      try await token.press(keys: first.map(String.init) + ["enter"])
    }
    switch cut {
    case .sinceBegun(let delay): try await Task.sleep(for: delay)
    case .after(let step, let delay):
      try await enrollment.errors.line(with: step)
      try await Task.sleep(for: delay)
    }
    try await token.kill9()
    _ = try? await typing.finished(within: .seconds(180))
    _ = try await enrollment.outcome()

    try await token.start()
    try await fixture.allIsAnswered()
    let isActive = try await token.accounts().map(\.stage) == ["active"]
    let isChosen = try await server.account(of: user)?.pin == "active"
    try model.require(!isActive || isChosen, "enrolled without a PIN")
    if !isActive {
      let again = try token.begin("enroll", uri, "--name", user)
      // A PIN is requested only if none has been chosen.
      if !isChosen { try await token.choose(second) }
      let outcome = try await again.outcome()
      try model.require(outcome.exit == .code(0), outcome.errors)
    }
    try model.require(try await token.accounts().map(\.stage) == ["active"], "not enrolled")
    try model.require(try await server.devices().count == devices + 1, "not one device more")
    try model.require(try await token.audit().count { $0.kind == "enrolled" } == 1, "not enrolled once")
    try model.require(try await fixture.portal.devices(of: user).map(\.pushAuthenticationEnabled) == [true], "no push")
    let login = try await eventually("a login") { () -> ChildProcess? in
      let login = try token.begin("login")
      // It ends if the service has not loaded the new account yet.
      let isAsked = try await eventually("the prompt or the end of a login") { () -> Bool? in
        guard login.isRunning else { return false }
        return try await token.led() == Wanted.pin.rawValue ? true : nil
      }
      return isAsked ? login : nil
    }
    try await token.type(isChosen ? first : second)
    let outcome = try await login.outcome()
    try model.require(outcome.exit == .code(0), "the PIN is lost: \(outcome.errors)")
    try model.require(try await server.pinFailures(of: user) == 0, "a right PIN was counted")
    try model.require(try await token.provesItsLog(), "the audit chain is broken")
    model.count(isActive ? "enrolled" : isChosen ? "PIN set" : "no PIN yet")
  }
}
