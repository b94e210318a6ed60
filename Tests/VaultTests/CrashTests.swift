// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import MobileAuth
import Testing
import Vault
import VaultModel

@Suite("A process that is killed", .timeLimit(.minutes(5))) struct ProcessThatIsKilledTests {
  /// SIGKILL inside an operation, repeatedly on the same vault.
  @Test("What returned is there, and at most the one operation under way besides")
  func whatReturnedIsThereAndAtMostTheOneOperationUnderWayBesides() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    let fixture = try VaultFixture()
    var model = VaultState()
    var done = 0
    for round in 0..<120 {
      let probe = try Probe(fixture.path, "operations", "\(seed)", "\(done)", "1000")
      let wanted = Int.random(in: 0...6, using: &random)
      var reported = probe.awaitReports(wanted)
      spin(nanoseconds: Int.random(in: 0...4_000_000, using: &random))
      probe.kill()
      reported += probe.awaitReports()
      #expect(probe.waitForEnd() == nil, "seed \(seed), round \(round)")

      let situation = "seed \(seed), round \(round), \(reported) operations after \(done)"
      for number in done..<done + reported { model.apply(Operation(number: number, seed: seed)) }
      done += reported
      let vault = try fixture.vault()
      let state = try VaultState(of: vault)
      if state != model {
        let steps = model.steps(of: Operation(number: done, seed: seed))
        model = try #require(steps.first { $0 == state }, "\(situation)")
        if model == steps.last { done += 1 }
      }
      model = model.stored
      #expect(try vault.verifyAudit() == .intact(lines: Int64(model.audit.count), first: 1), "\(situation)")
    }
    #expect(done > 120, "seed \(seed)")
    #expect(try model.pinsThatFail(in: try fixture.vault()) == [], "seed \(seed)")
  }

  /// Killed while the directory is still empty or incomplete.
  @Test("A first run that was killed is finished by the next") func firstRunThatWasKilledIsFinishedByTheNext() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    for round in 0..<40 {
      let fixture = try VaultFixture()
      let probe = try Probe(fixture.path, "record", "first", "1")
      spin(nanoseconds: Int.random(in: 0...30_000_000, using: &random))
      probe.kill()
      let reported = probe.awaitReports()
      probe.waitForEnd()
      let vault = try fixture.vault()
      let lines = try vault.auditLines(newest: .max).count
      #expect((reported...1).contains(lines), "seed \(seed), round \(round)")
      #expect(try vault.verifyAudit() == .intact(lines: Int64(lines), first: 1), "seed \(seed), round \(round)")
    }
  }

  /// A busy loop, because the moment must be random: a timer would round it.
  private func spin(nanoseconds: Int) {
    let end = ContinuousClock.now + .nanoseconds(nanoseconds)
    while ContinuousClock.now < end {}
  }
}

@Suite("Several processes and threads", .timeLimit(.minutes(5))) struct SeveralProcessesAndThreadsTests {
  @Test("A first run by four at once makes one secret and one chain")
  func firstRunByFourAtOnceMakesOneSecretAndOneChain() throws {
    let fixture = try VaultFixture()
    let probes = try (1...4).map { try Probe(fixture.path, "record", "process \($0)", "25") }
    for probe in probes {
      #expect(probe.awaitReports() == 25)
      #expect(probe.waitForEnd() == 0)
    }
    let vault = try fixture.vault()
    #expect(try vault.verifyAudit() == .intact(lines: 100, first: 1))
    let details = try vault.auditLines(newest: 100).map(\.entry.detail)
    for process in 1...4 {
      #expect(details.filter { $0.hasPrefix("process \(process) ") } == (1...25).map { "process \(process) \($0)" })
    }
    #expect(names(in: fixture.path).filter { $0.hasPrefix("device-secret") } == ["device-secret"])
  }

  @Test("Two vaults in one process share one chain") func twoVaultsInOneProcessShareOneChain() async throws {
    let fixture = try VaultFixture()
    let vaults = [try fixture.vault(), try fixture.vault()]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<6 {
        group.addTask {
          for number in 0..<10 {
            let vault = vaults[(task + number) % 2]
            try untilUnlocked { try vault.record(entry(.decided, nil, "\(task) \(number)")) }
            _ = try vault.auditLines(newest: 3)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try vaults[0].verifyAudit() == .intact(lines: 60, first: 1))
    let details = Set(try vaults[1].auditLines(newest: 60).map(\.entry.detail))
    #expect(details == Set((0..<6).flatMap { task in (0..<10).map { "\(task) \($0)" } }))
  }
}
