// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import MobileAuth
import SQLite
import Secrets
import Testing
import Vault
import VaultModel

/// The bytes that a wipe leaves in the files. Copies made by a flash controller cannot be checked.
@Suite("Nothing of a sealed secret is left in any file", .timeLimit(.minutes(5))) struct ResidueTests {
  private let fixture: VaultFixture
  private let vault: Vault

  init() throws {
    fixture = try VaultFixture()
    vault = try fixture.vault()
    try vault.put(server(acme))
    try vault.put(server(umbrella))
    try vault.put(account(bob, at: umbrella))
  }

  /// A small secret, one of a page's size, and one over several pages.
  @Test("After a wipe, dropped keys, a new key, a removed server", arguments: [32, 4_000, 20_000])
  func afterAWipeDroppedKeysANewKeyARemovedServer(size: Int) throws {
    // Another process reads concurrently.
    let other = try fixture.vault()
    let removals: [(String, () throws -> Void)] = [
      ("wipe", { try vault.wipe(account: alice, entry(.wiped)) }),
      ("drop", { try vault.dropKeys(of: alice, entry(.disenrolled)) }),
      ("put again", { try vault.put(account(alice)) }),
      ("wipe server", { try vault.wipe(server: acme, entry(.wiped)) }),
    ]
    for (what, remove) in removals {
      try vault.put(server(acme))
      try vault.put(
        AccountRecord(
          id: alice, server: acme, profile: "p", stage: .active,
          secrets: SecretBytes(copying: [UInt8](repeating: 0, count: size))))
      _ = try other.accounts()
      let ciphertext = try fixture.raw { raw in
        try raw.rows("SELECT box FROM accounts WHERE id = 'alice'") { try $0.blob(0) }[0]
      }
      #expect(try traces(of: ciphertext) > 0, "the search must find a ciphertext that is there")
      try remove()
      #expect(try traces(of: ciphertext) == 0, "\(what) of \(size) bytes")
    }
  }

  @Test("After a changed PIN, a new PIN, dropped keys, too many wrong PINs, a wipe", arguments: [32, 4_000])
  func afterAChangedPINANewPINDroppedKeysTooManyWrongPINsAWipe(size: Int) throws {
    let keys = SecretBytes(copying: [UInt8](repeating: 0, count: size))
    let clock = PatientClock(wallClockMilliseconds: 0)
    let removals: [(String, () throws -> Void)] = [
      (
        "change",
        {
          _ = try vault.changePIN(
            of: alice, from: pin("11111"), to: pin("22222"), parameters: cheap, in: clock.environment)
        }
      ),
      ("set", { try vault.setPIN(of: alice, to: pin("33333"), keys: keys) }),
      ("drop", { try vault.dropKeys(of: alice, entry(.disenrolled)) }),
      ("limit", { for _ in 1...3 { _ = try vault.unlock(alice, "9") } }),
      ("wipe", { try vault.wipe(account: alice, entry(.wiped)) }),
    ]
    for (what, remove) in removals {
      try vault.put(server(acme))
      try vault.put(account(alice))
      try vault.setPIN(of: alice, to: pin("11111"), keys: keys)
      let ciphertext = try fixture.raw { raw in
        try raw.rows("SELECT box FROM pins WHERE account = 'alice'") { try $0.blob(0) }[0]
      }
      #expect(try traces(of: ciphertext) > 0, "the search must find a ciphertext that is there")
      try remove()
      #expect(try traces(of: ciphertext) == 0, "\(what) of \(size) bytes")
    }
  }

  /// The wipe waits 5 s for the reader, in a thread of its own.
  @Test(
    "After a wipe during which another process reads for long: with the next change, flush or start",
    arguments: [
      { try $0.vault.record(entry(.opened, bob)) }, { try $0.vault.flush() }, { _ = try $0.fixture.vault() },
    ] as [@Sendable (ResidueTests) throws -> Void])
  func afterAWipeDuringASnapshot(next: @escaping @Sendable (ResidueTests) throws -> Void) async throws {
    let traces = try await tracesOfAWipe(by: vault) { [self] in try next(self) }
    #expect(traces.during > 0, "the reader needs the former pages")
    #expect(traces.after == 0)
  }

  @Test("After a wipe by another process during which a third one reads for long: when the service hears of it")
  func afterAWipeElsewhere() async throws {
    let traces = try await tracesOfAWipe(by: fixture.vault()) { [vault] in
      vault.noteChangesElsewhere()
      try vault.flush()
    }
    #expect(traces.during > 0 && traces.after == 0, "\(traces)")
  }

  /// Wipes an account while another connection reads, which delays the erasure for longer than the wipe waits.
  /// - Returns: the traces of its ciphertext meanwhile, and after `next`.
  private func tracesOfAWipe(
    by wiping: Vault, next: @escaping @Sendable () throws -> Void
  ) async throws -> (during: Int, after: Int) {
    try vault.put(account(alice))
    let ciphertext = try fixture.raw { raw in
      try raw.rows("SELECT box FROM accounts WHERE id = 'alice'") { try $0.blob(0) }[0]
    }
    let wipe: Task<(during: Int, after: Int), any Error> = Task {
      try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(
            with: Result {
              let during = try fixture.raw { reader in
                try reader.snapshot { snapshot in
                  _ = try snapshot.rows("SELECT id FROM accounts") { _ in }
                  try wiping.wipe(account: alice, entry(.wiped))
                  try wiping.record(entry(.opened, bob))
                  try wiping.flush()
                  return try traces(of: ciphertext)
                }
              }
              try next()
              return (during, try traces(of: ciphertext))
            })
        }
      }
    }
    return try await wipe.finished("the end of the wipe")
  }

  /// The number of 16-byte pieces of the ciphertext that are found, at any offset of any file.
  private func traces(of ciphertext: [UInt8]) throws -> Int {
    let pieces = Set(stride(from: 0, through: ciphertext.count - 16, by: 16).map { Array(ciphertext[$0..<$0 + 16]) })
    let starts = Set(pieces.map { $0[0] })
    var found: Set<[UInt8]> = []
    for name in names(in: fixture.path) {
      let bytes = try contents(of: "\(fixture.path)/\(name)")
      guard bytes.count >= 16 else { continue }
      for offset in 0...bytes.count - 16 where starts.contains(bytes[offset]) {
        let piece = Array(bytes[offset..<offset + 16])
        if pieces.contains(piece) { found.insert(piece) }
      }
    }
    return found.count
  }
}
