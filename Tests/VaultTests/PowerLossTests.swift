// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import SQLite
import Testing
import Vault
import VaultModel

/// A power loss at every write, sync and truncation of a vault's life. The order of SQLite's operations is recorded
/// once from a real vault; every state that a power loss can leave is then opened. Serialized, because each test uses a
/// whole processor.
@Suite("A card that loses power", .serialized, .timeLimit(.minutes(5))) struct PowerLossTests {
  @Test("What returned is there, and at most the one operation under way besides", arguments: [11, 14] as [UInt64])
  func whatReturnedIsThereAndAtMostTheOneOperationUnderWayBesides(seed: UInt64) throws {
    let fixture = try VaultFixture(in: "/dev/shm")
    let secret = try fixture.deviceSecret()
    let log = Log()
    let vault = try RecordingVFS.recording(fixture.path, in: log.append) {
      // One of the logs has a fixed size.
      try Vault.open(directory: fixture.path, deviceSecret: secret, reservesLog: seed == 14)
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
    #expect(expected.filter { $0.count == 2 }.count >= 5, "too few attempts for a power loss during one")

    let deviceSecret = try contents(of: "\(fixture.path)/device-secret")
    var random = SeededGenerator(seed: seed)
    var card = SimulatedStorage()
    var returned = 0
    var (cutOff, cuts) = (0, 0)
    // Many power losses leave the same files. Each set of files is opened once per completed operation.
    var opened: [String: Bool] = [:]
    for (moment, event) in log.events.enumerated() {
      card.add(event)
      if case .returned = event { returned += 1 }
      for cut in SimulatedStorage.PowerLoss.allCases {
        cuts += 1
        let files = card.files(after: cut, &random)
        let fingerprint = "\(returned) \(SimulatedStorage.fingerprint(of: files))"
        if let isCutOff = opened[fingerprint] {
          if isCutOff { cutOff += 1 }
          continue
        }
        let copy = try VaultFixture(in: "/dev/shm")
        try write(deviceSecret, to: "\(copy.path)/device-secret", mode: 0o400)
        for (name, bytes) in files { try write(bytes, to: "\(copy.path)/\(name)") }
        let survivor = try copy.vault()
        let state = try VaultState(of: survivor)
        let what = "seed \(seed), moment \(moment), \(cut): \(returned) operations had returned"
        let allowed = [expected[returned].last!] + expected[returned...].dropFirst().prefix(1).joined()
        let known = try #require(allowed.first { $0 == state }, "\(what)")
        let isCutOff = known != allowed.first && known != allowed.last
        opened[fingerprint] = isCutOff
        if isCutOff { cutOff += 1 }
        try #require(
          try survivor.verifyAudit() == .intact(lines: Int64(state.audit.count), first: 1), "\(what)")
        try #require(try known.pinsThatFail(in: survivor) == [], "\(what)")
      }
    }
    print("seed \(seed): \(cuts) power losses, \(opened.count) different sets of files opened")
    #expect(cutOff > 100, "seed \(seed): too few power losses between the count and the verdict")
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
