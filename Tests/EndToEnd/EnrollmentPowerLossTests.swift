// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct EnrollmentPowerLosses {
    private static let dice = Dice.fresh()
    private static let cutsPerLane = 6
    private static let lanes = Lanes(6)

    /// A kill at any time during an enrollment, then the same URI again: one device, one account, both usable. 36 kills
    /// in total.
    @Test("A killed enrollment goes on with the same URI", arguments: 0..<6)
    func aKilledEnrollmentGoesOnWithTheSameURI(lane: Int) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      try await withScene { fixture in
        var whole = try await timeOfAnEnrollment(in: fixture)
        var interrupted = 0
        for number in 1...Self.cutsPerLane {
          let delay = whole * Double.random(in: 0...1.1, using: &dice)
          let context = "seed \(Self.dice.seed), lane \(lane), cut \(number) after \(delay) of \(whole)"
          let user = "user\(number)"
          try await fixture.server.addUser(user)
          let uri = try await fixture.server.activation(for: user)
          let before = try await fixture.server.devices().count
          let token = TestToken(state: fixture.folder.file(user), board: "simulated")

          let enrollment = try ChildProcess(Program.token, ["enroll", uri, "--state", token.state])
          try await Task.sleep(for: delay)
          try await enrollment.kill9()

          // If it was killed after the last step, it is enrolled and there is no enrollment to resume.
          if try await token.command("accounts", "--json").output.contains("\"active\"") == false {
            interrupted += 1
            let again = try await token.enroll(uri)
            #expect(again.exit == .code(0), "\(context): \(again.errors)")
          } else {
            // The machine was busy while the time was measured.
            whole = min(whole, delay)
          }
          #expect(try await token.accounts().map(\.stage) == ["active"], "\(context)")
          #expect(try await fixture.server.devices().count == before + 1, "\(context)")
          let devices = try await fixture.portal.devices(of: user)
          #expect(devices.map(\.pushAuthenticationEnabled) == [true], "\(context)")
          #expect(try await token.provesItsLog(), "\(context)")
          #expect(try await token.audit().count { $0.kind == "enrolled" } == 1, "\(context)")
          #expect(try await token.command("doctor").exit == .code(0), "\(context)")
        }
        print(
          "\(Self.cutsPerLane) enrollments cut with seed \(Self.dice.seed), lane \(lane): \(interrupted) before their end"
        )
        let tally = ["interrupted": interrupted, "cut": Self.cutsPerLane]
        if let all = Self.lanes.end(with: tally) {
          // On a busy machine, enrollments differ from the measured time, and fewer kills meet one.
          #expect(all["interrupted", default: 0] * 3 >= all["cut", default: 0])
        }
      }
    }

    private func timeOfAnEnrollment(in fixture: EndToEndFixture) async throws -> Duration {
      try await fixture.server.addUser("first")
      let uri = try await fixture.server.activation(for: "first")
      let began = ContinuousClock.now
      try await TestToken(state: fixture.folder.file("first"), board: "simulated").enroll(uri).succeeded()
      return ContinuousClock.now - began
    }
  }
}
