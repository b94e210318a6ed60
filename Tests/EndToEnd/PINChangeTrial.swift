// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness

/// One PIN change, one kill: afterwards exactly one of the two PINs is valid, and the token knows which.
struct PINChangeTrial {
  let fixture: EndToEndFixture

  private enum PowerLoss {
    case sinceBegun(Duration)
    /// After the last Enter, while both sides write.
    case sinceChosen(Duration)
    /// After the server accepted the new PIN, possibly before the token received the response.
    case sinceChanged(Duration)

    static func random(using dice: inout Dice) -> PowerLoss {
      switch Int.random(in: 0..<5, using: &dice) {
      case 0: .sinceBegun(dice.milliseconds(0...2500))
      case 1...2: .sinceChosen(dice.milliseconds(0...500))
      default: .sinceChanged(dice.milliseconds(0...25))
      }
    }
  }

  func run(_ model: inout PINModel, _ dice: inout Dice) async throws {
    let (token, server) = (fixture.token, fixture.server)
    var chosen = dice.pin()
    while chosen == model.pin { chosen = dice.pin() }
    let cut = PowerLoss.random(using: &dice)
    let isOtherTried = Int.random(in: 0..<3, using: &dice) == 0
    let mark = try server.log.mark
    let changedBefore = server.logged(": PIN changed")
    let change = try token.begin("pin", "change")
    let typing = Task { [model, chosen] in
      try await token.type(model.pin)
      try await token.type(chosen, when: .newPIN)
      // The last Enter is pressed here; waiting for the LED's next indication would be too late for the kill.
      try await token.asks(Wanted.newPINAgain.rawValue)
      try await token.press(keys: chosen.map(String.init) + ["enter"])
    }
    switch cut {
    case .sinceBegun(let delay): try await Task.sleep(for: delay)
    case .sinceChosen(let delay):
      try await typing.finished(within: .seconds(180))
      try await Task.sleep(for: delay)
    case .sinceChanged(let delay):
      try await server.log.line(with: ": PIN changed", from: mark)
      try await Task.sleep(for: delay)
    }
    try await token.kill9()
    _ = try? await typing.finished(within: .seconds(180))
    let outcome = try await change.outcome()
    try await token.startConnected()
    try await fixture.allIsAnswered()

    let isChanged = server.logged(": PIN changed") > changedBefore
    try model.require(outcome.exit != .code(0) || isChanged, "it was said to be changed")
    try model.require(try await server.pinFailures() == 0, "a right PIN was counted")
    let (right, wrong) = isChanged ? (chosen, model.pin) : (model.pin, chosen)
    let login = try token.begin("login")
    if isOtherTried {
      try await token.type(wrong)
      try await token.log.line(with: "pin-wrong account alice")
      try model.require(try await server.pinFailures() == 1, "the other PIN was not counted")
    }
    try await token.type(right)
    let exit = try await login.outcome()
    try model.require(exit.exit == .code(0), "\(isChanged ? "new" : "old") PIN: \(exit.errors)")
    try model.require(try await server.pinFailures() == 0, "the right PIN does not clear the count")
    model.pin = right
    model.count(isChanged ? "changed" : "not changed")
  }
}
