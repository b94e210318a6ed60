// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// The service as two processes: either may end at any time, and start again in any order.
  @Suite struct TwoProcesses {
    private static let dice = Dice.fresh()

    @Test("An account is enrolled and a request approved through the network process")
    func approvesThroughTheNetworkProcess() async throws {
      try await withPINScene(users: [], isSplit: true) { fixture in
        try await fixture.server.addUser("alice")
        let uri = try await fixture.server.activation(for: "alice")
        let mark = try fixture.token.log.mark
        try await fixture.token.enroll(uri, name: "alice", choosing: "13589").succeeded()
        try await fixture.token.log.line(with: "] connected to", from: mark)
        let device = try #require(try await fixture.portal.devices().first).id
        let payment = try await fixture.portal.ask(on: device, type: "payment")
        try await fixture.token.log.line(with: "opened request \(payment)")
        try await fixture.token.type("13589")
        #expect(try await fixture.portal.finalResult(of: payment).isAuthenticated)
        let login = try await fixture.portal.ask(on: device)
        try await fixture.token.answer(login, with: .double)
        #expect(try await fixture.portal.finalResult(of: login).isAuthenticated == false)
        let doctor = try await fixture.token.command("doctor", "--authorities", fixture.server.directory + "/ca.pem")
        #expect(doctor.output.contains("the network in a process of its own"), "\(doctor)")
      }
    }

    @Test("Each process loads only the libraries that it uses") func libraries() async throws {
      try await withSplitScene { fixture in
        try await fixture.approve()
        let device = try wholeText(of: "/proc/\(try fixture.token.running.processID)/maps")
        let network = try wholeText(of: "/proc/\(try fixture.token.network.processID)/maps")
        #expect(device.contains("/librnp.so") && network.contains("/libcurl.so"))
        for other in ["/libcurl.so", "/libssl.so", "/libmosquitto.so", "/libusb-1.0.so"] {
          #expect(!device.contains(other))
        }
        for other in ["/librnp.so", "/libmosquitto.so", "/libusb-1.0.so"] { #expect(!network.contains(other)) }
      }
    }

    @Test("The LED says that there is no connection within 2 s after the network process is gone")
    func ledSaysSo() async throws {
      try await withSplitScene { fixture in
        // A busy machine adds to the time: one of up to five kills must be noticed soon enough.
        var times: [Duration] = []
        while times.count < 5, times.allSatisfy({ $0 >= .seconds(2) }) {
          try await fixture.token.shows("idle, connected")
          let killed = ContinuousClock.now
          try await fixture.token.network.kill9()
          try await fixture.token.shows("idle, not connected")
          times.append(ContinuousClock.now - killed)
          let mark = try fixture.token.log.mark
          try await fixture.token.startNetwork()
          try await fixture.token.log.line(with: "] connected to", from: mark)
        }
        #expect(times.contains { $0 < .seconds(2) } && times.allSatisfy { $0 < .seconds(20) }, "\(times)")
        try await fixture.approve()
      }
    }

    @Test("The device process starts without the network process, and waits for it") func startsInAnyOrder()
      async throws
    {
      try await withSplitScene { fixture in
        try await fixture.token.stop()
        try await fixture.token.network.kill9()
        try await fixture.token.startDevice()
        try await fixture.token.shows("idle, not connected")
        try await fixture.token.startNetwork()
        try await fixture.token.log.line(with: "] connected to")
        try await fixture.approve()
      }
    }

    @Test("A network process that hangs is noticed with the next request") func hangs() async throws {
      try await withSplitScene { fixture in
        let transaction = try await fixture.ask()
        try await fixture.token.log.line(with: "opened request \(transaction)")
        try fixture.token.network.send(SIGSTOP)
        try await fixture.token.answer(transaction, with: .hold)
        try await fixture.token.shows("outcome unknown, retrying")
        try fixture.token.network.send(SIGCONT)
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(fixture.server.logged("transaction \(transaction): authenticated") == 1)
      }
    }

    /// Five independent tokens; each process is killed 50 times in total.
    @Test("Killed processes neither invent nor repeat nor forget an answer", arguments: 0..<5)
    func killedProcesses(lane: Int) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      try await withSplitScene { fixture in
        var approved = 0
        for number in 1...20 {
          let trial = KillTrial(
            fixture: fixture, killsNetwork: number.isMultiple(of: 2),
            isPressed: Int.random(in: 0..<4, using: &dice) > 0,
            delay: dice.milliseconds(0...1500), pause: dice.milliseconds(0...400))
          do { if try await trial.run() { approved += 1 } } catch {
            Issue.record("seed \(Self.dice.seed), lane \(lane), kill \(number), \(trial): \(error)")
            throw error
          }
        }
        print("20 kills with seed \(Self.dice.seed), lane \(lane): \(approved) approved")
        #expect((1..<20).contains(approved))
      }
    }
  }
}

/// Like `withScene`, with a token of two processes.
func withSplitScene(_ body: (EndToEndFixture) async throws -> Void) async throws {
  try await withScene(makeToken: { TestToken(state: $0, board: $1, isSplit: true) }, body)
}

/// One request during which one of the processes is killed.
private struct KillTrial: CustomStringConvertible {
  let fixture: EndToEndFixture
  let killsNetwork: Bool
  /// Whether the user approves the request; otherwise the button is not touched.
  let isPressed: Bool
  /// From the portal's request to the kill.
  let delay: Duration
  /// From the kill to the new process.
  let pause: Duration

  var description: String {
    "\(killsNetwork ? "network" : "device") killed \(delay) after the portal asked, \(isPressed ? "" : "not ")pressed"
  }

  struct ViolationError: Error, CustomStringConvertible {
    let description: String
  }

  /// - Returns: whether the request was approved.
  func run() async throws -> Bool {
    let (token, person) = (fixture.token, SimulatedUser())
    let process = try token.running
    let transaction = try await fixture.ask()
    let holding = Task { if isPressed { await person.hold(transaction, on: token) } }
    try await Task.sleep(for: delay)
    if killsNetwork {
      try await token.network.kill9()
      try await Task.sleep(for: pause)
      try await token.startNetwork()
    } else {
      try await process.kill9()
      try await holding.finished(within: .seconds(180))
      try await Task.sleep(for: pause)
      try await token.startDevice()
    }
    if killsNetwork, isPressed {
      try await token.log.line(with: "settled request \(transaction)", "approved, receipt ")
    }
    try await holding.finished(within: .seconds(180))
    // What is still open is canceled: the result is final then.
    if try await !fixture.portal.result(of: transaction).isAuthenticated {
      try await fixture.portal.cancel(transaction)
    }
    let isApproved = try await fixture.portal.result(of: transaction).isAuthenticated
    if isApproved {
      _ = try await eventually("the approval in the audit chain") {
        try await token.audit(of: transaction).ending?.hasPrefix("approved, receipt ") == true ? true : nil
      }
    }
    let log = try await token.audit(of: transaction)
    let answers = fixture.server.logged("transaction \(transaction): authenticated")
    try require(answers == (isApproved ? 1 : 0), "the server took \(answers) answers")
    try require(isPressed || !log.contains { $0.kind == "decided" }, "decided without a press: \(log)")
    let approvals = log.count { $0.kind == "settled" && $0.detail.hasPrefix("approved, ") }
    try require(approvals == (isApproved ? 1 : 0), "\(approvals) approvals in \(log)")
    return isApproved
  }

  private func require(_ holds: Bool, _ what: String) throws {
    if !holds { throw ViolationError(description: what) }
  }
}
