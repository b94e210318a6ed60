// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import MobileAuth
import SQLite
import Testing
import Vault
import VaultModel

/// A power loss at every write, sync and truncation of a vault's life. The order of SQLite's operations is recorded
/// once from a real vault; every state that a power loss can leave is then opened. Serialized, because each test uses a
/// whole processor.
@Suite("A card that loses power", .serialized, .timeLimit(.minutes(15))) struct PowerLossTests {
  @Test("What returned is there, and at most the one operation under way besides", arguments: [11, 14] as [UInt64])
  func whatReturnedIsThereAndAtMostTheOneOperationUnderWayBesides(seed: UInt64) throws {
    let losses = try losePower(seed: seed)
    #expect(losses.attempts >= 5, "too few attempts for a power loss during one")
    #expect(losses.cutOff > 100, "too few power losses between the count and the verdict")
  }

  /// `POWER_LOSSES` is the number of power losses, and `POWER_LOSS_SEED` the seed of the first life, whose successors
  /// count up from there.
  @Test("The same for as many power losses as are asked for", .enabled(if: number(in: "POWER_LOSSES") != nil))
  func asManyPowerLossesAsAreAskedFor() throws {
    let wanted = Self.number(in: "POWER_LOSSES") ?? 0
    var (seed, total, cutOff) = (Self.number(in: "POWER_LOSS_SEED") ?? 15, 0, 0)
    while total < wanted {
      let losses = try losePower(seed: UInt64(seed))
      total += losses.count
      cutOff += losses.cutOff
      seed += 1
    }
    print("\(total) power losses, \(cutOff) of them between the count and the verdict; the last seed was \(seed - 1)")
  }

  private static func number(in variable: String) -> Int? {
    getenv(variable).flatMap { Int(String(cString: $0)) }
  }

  /// What a life was tested with.
  private struct Losses {
    /// The number of power losses.
    var count = 0
    /// The number of those between the count of a PIN attempt and its verdict.
    var cutOff = 0
    /// The number of operations that count an attempt first.
    let attempts: Int
  }

  private func losePower(seed: UInt64) throws -> Losses {
    let (secret, expected, events) = try recordLife(seed: seed)
    var random = SeededGenerator(seed: seed)
    var card = SimulatedStorage()
    var returned = 0
    var losses = Losses(attempts: expected.filter { $0.count > 1 }.count)
    // Many power losses leave the same files. Each set of files is opened once per completed operation.
    var opened: [String: Bool] = [:]
    for (moment, event) in events.enumerated() {
      card.add(event)
      if case .returned = event { returned += 1 }
      for cut in SimulatedStorage.PowerLoss.allCases {
        losses.count += 1
        let files = card.files(after: cut, &random)
        let fingerprint = "\(returned) \(SimulatedStorage.fingerprint(of: files))"
        if let isCutOff = opened[fingerprint] {
          if isCutOff { losses.cutOff += 1 }
          continue
        }
        let allowed = [expected[returned].last!] + expected[returned...].dropFirst().prefix(1).joined()
        let known = try reopen(
          files, secret, allowed, "seed \(seed), moment \(moment), \(cut): \(returned) operations had returned")
        // Between the count and the verdict.
        let isCutOff = known == allowed.dropLast().last && known != allowed.first && known != allowed.last
        opened[fingerprint] = isCutOff
        if isCutOff { losses.cutOff += 1 }
      }
    }
    print("seed \(seed): \(losses.count) power losses, \(opened.count) different sets of files opened")
    return losses
  }

  /// Runs a vault's life.
  /// - Returns: the device secret, the states that each operation goes through, and what was done to the storage.
  private func recordLife(seed: UInt64) throws -> (secret: [UInt8], expected: [[VaultState]], events: [StorageEvent]) {
    let fixture = try VaultFixture(in: "/dev/shm")
    let secret = try fixture.deviceSecret()
    let log = Log()
    let vault = try RecordingVFS.recording(fixture.path, in: log.append) {
      // Half of the logs have a fixed size.
      try Vault.open(directory: fixture.path, deviceSecret: secret, reservesLog: seed.isMultiple(of: 2))
    }
    var expected = [[VaultState()]]
    for operation in Operation.beginning + (0..<45).map({ Operation(number: $0, seed: seed) }) {
      let steps = expected.last!.last!.steps(of: operation)
      guard !steps.isEmpty else { continue }
      try operation.apply(to: vault)
      log.append(.returned)
      expected.append(steps)
    }
    #expect(expected.count > 20)

    return (try contents(of: "\(fixture.path)/device-secret"), expected, log.events)
  }

  /// Opens what a power loss left.
  /// - Parameters:
  ///   - allowed: the states that may be found.
  ///   - what: names the power loss.
  /// - Returns: the state that was found.
  private func reopen(
    _ files: [String: [UInt8]], _ secret: [UInt8], _ allowed: [VaultState], _ what: String
  ) throws -> VaultState {
    let copy = try VaultFixture(in: "/dev/shm")
    try write(secret, to: "\(copy.path)/device-secret", mode: 0o400)
    for (name, bytes) in files { try write(bytes, to: "\(copy.path)/\(name)") }
    let survivor = try copy.vault()
    let state = try VaultState(of: survivor)
    let known = try #require(allowed.first { $0 == state }, "\(what)")
    try #require(try survivor.verifyAudit() == .intact(lines: Int64(state.audit.count), first: 1), "\(what)")
    try #require(try known.pinsThatFail(in: survivor) == [], "\(what)")
    return known
  }

  /// Shows that the simulation can lose data; otherwise the test above would prove nothing.
  @Test("Without waiting for storage the simulated power loss does lose a row")
  func withoutWaitingForStorageTheSimulatedPowerLossDoesLoseARow() throws {
    let fixture = try VaultFixture(in: "/dev/shm")
    let log = Log()
    try RecordingVFS.recording(fixture.path, in: log.append) {
      let connection = try Connection(path: fixture.database)
      try connection.execute("PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF; CREATE TABLE t (x)")
      try connection.run("INSERT INTO t VALUES (?)", Int64(1))
    }
    var card = SimulatedStorage()
    for event in log.events { card.add(event) }
    var random = SeededGenerator(seed: 1)
    #expect(card.files(after: .everythingElse, &random)["vault.sqlite3"]?.count == 8192)
    #expect(card.files(after: .nothingElse, &random)["vault.sqlite3"] == nil)
  }
}
