// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness

/// One request that requires the PIN, one entry, one kill.
struct PINAnswerTrial {
  let fixture: EndToEndFixture

  private enum PowerLoss {
    case sinceOpened(Duration)
    case sinceTyped(Duration)
    case sinceDecided(Duration)

    static func random(using dice: inout Dice) -> PowerLoss {
      switch Int.random(in: 0..<6, using: &dice) {
      case 0: .sinceOpened(dice.milliseconds(0...700))
      case 1...2: .sinceTyped(dice.milliseconds(0...500))
      default: .sinceDecided(dice.milliseconds(0...70))
      }
    }
  }

  func run(_ model: inout PINModel, _ dice: inout Dice) async throws {
    let (token, server) = (fixture.token, fixture.server)
    let isRight = model.failures >= 3 || Bool.random(using: &dice)
    let isAnsweredAgain = model.failures >= 2 || Int.random(in: 0..<4, using: &dice) == 0
    let cut = PowerLoss.random(using: &dice)
    let wrongBefore = server.logged(": PIN wrong")
    let transaction = try await fixture.askForPIN()
    let typist = Typist(
      token: token, keys: (isRight ? model.pin : EndToEndFixture.wrongPIN).map(String.init) + ["enter"])
    let process = try token.running
    let typing = Task { await typist.answer(transaction) }
    switch cut {
    case .sinceOpened(let delay): try await Task.sleep(for: delay)
    case .sinceTyped(let delay):
      try model.require(await typist.hasTyped(), "no PIN was typed")
      try await Task.sleep(for: delay)
    case .sinceDecided(let delay):
      try await process.errors.line(with: "decided request \(transaction)")
      try await Task.sleep(for: delay)
    }
    try await token.kill9()
    try await typing.finished(within: .seconds(180))
    try await token.startConnected()
    try await fixture.allIsAnswered()

    let result = try await fixture.portal.result(of: transaction)
    let failures = try await server.pinFailures()
    let reported = process.errors.count(of: "pin-wrong request \(transaction)")
    let verified = server.logged(": PIN wrong") - wrongBefore
    try model.require(!result.isAuthenticated || isRight, "approved with a wrong PIN")
    try model.require(!result.isAuthenticated || typist.didType, "approved without a PIN")
    if result.isAuthenticated {
      try model.require(failures == 0, "\(failures ?? -1) failures after the right PIN")
    } else {
      let most = !isRight && typist.didType ? 1 : 0
      try model.require(
        (reported...most).contains(verified), "\(verified) verified, \(reported) told, at most \(most) typed")
      try model.require(
        failures == model.failures + verified, "\(failures ?? -1) after \(model.failures) + \(verified)")
      try await token.log.line(with: "opened request \(transaction)")
    }
    try model.require(
      result.usedAuthenticationAttempts ?? 0 == (result.isAuthenticated ? 1 : verified), "attempts of the portal's")
    model.failures = failures ?? 0
    let shown = try await token.status().pin()?.previousFailureCount
    try model.require(shown == failures, "the token shows \(shown ?? -1) failures")
    model.count(result.isAuthenticated ? "approved" : verified > 0 ? "wrong" : "untouched")
    try await end(transaction, result, isAnsweredAgain, &model)
  }

  private func end(
    _ transaction: String, _ result: Portal.Result, _ isAnsweredAgain: Bool, _ model: inout PINModel
  ) async throws {
    if !result.isAuthenticated, isAnsweredAgain {
      try await fixture.token.type(model.pin)
      try await fixture.token.log.line(with: "settled request \(transaction)", "approved, receipt ")
      try model.require(try await fixture.server.pinFailures() == 0, "the right PIN does not clear the count")
      model.failures = 0
    } else if !result.isAuthenticated {
      try await fixture.portal.cancel(transaction)
      try await fixture.token.log.line(with: "settled request \(transaction)")
    }
    let audit = try await eventually("the approval in the audit chain") {
      let audit = try await fixture.token.audit(of: transaction)
      return !result.isAuthenticated || audit.ending?.hasPrefix("approved, receipt ") == true ? audit : nil
    }
    let decisions = audit.count { $0.kind == "decided" }
    try model.require(decisions <= 2, "\(decisions) decisions")
  }
}

/// A simulated user who types when a request is shown, until the token has accepted the entry or is killed.
private struct Typist: Sendable {
  let token: TestToken
  let keys: [String]
  private let typed = Observed(false)

  init(token: TestToken, keys: [String]) {
    self.token = token
    self.keys = keys
  }

  var didType: Bool { typed.value }

  func hasTyped() async -> Bool { await typed.first(within: patience) { $0 ? true : nil } ?? false }

  func answer(_ transaction: String) async {
    guard let process = try? token.running else { return }
    let deadline = ContinuousClock.now + patience
    while process.isRunning, .now < deadline {
      // Not while the token handles an earlier entry: this one would be another attempt.
      let isAsked = try? await token.pendingRequests().contains { $0.transaction == transaction && $0.pressCounts }
      guard process.errors.count(of: "decided request \(transaction)") == 0 else { return }
      if isAsked == true {
        typed.change { $0 = true }
        try? await token.press(keys: keys)
      } else {
        try? await Task.sleep(for: .milliseconds(20))
      }
    }
  }
}
