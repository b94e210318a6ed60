// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Testing
import Vault
import VaultModel

@Suite("A vault beside its model", .timeLimit(.minutes(5))) struct ModelTests {
  /// Random operations on a real vault and on a model in plain Swift; the vault is sometimes closed and opened again.
  @Test("They never differ", arguments: [1, 2, 3] as [UInt64])
  func theyNeverDiffer(seed: UInt64) throws {
    let fixture = try VaultFixture(in: "/dev/shm")
    var vault = try fixture.vault()
    var model = VaultState()
    for number in 0..<300 {
      let operation = Operation(number: number, seed: seed)
      if model.apply(operation) {
        try operation.apply(to: vault)
      } else {
        #expect(throws: StateStoreError.self, "seed \(seed), operation \(number)") { try operation.apply(to: vault) }
      }
      if number % 50 == 49 { (vault, model) = (try fixture.vault(), model.stored) }
      if number % 10 == 9 {
        try #require(try VaultState(of: vault) == model.cleared, "seed \(seed), operation \(number)")
      }
    }
    #expect(try vault.verifyAudit() == .intact(lines: Int64(model.audit.count), first: 1))
    #expect(model.audit.count > 100)
    #expect(try model.cleared.pinsThatFail(in: vault) == [], "seed \(seed)")
  }
}
