// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `An account that a person locks` {
  private static let tampering = "deviceTampering"

  private let world: AMWorld
  private let account: AccountRecord

  init() async throws {
    world = try AMWorld()
    account = try await world.enrolled(policies: #"{"deviceTampering": {"score": 0.5}, "unheardOf": {}}"#)
  }

  private var isTamperedWith: Bool { world.isTamperedWith.withLock { $0 } }

  private func lock(of account: AccountRecord) throws -> AccountLock? {
    try PingAM.lock(of: account, hasPIN: false, isTamperedWith: { isTamperedWith })
  }

  private func locked(_ account: AccountRecord, with policy: String? = Self.tampering) throws -> AccountRecord {
    try PingAM.lockedByHand(account, with: policy, hasPIN: false, isTamperedWith: { isTamperedWith })
  }

  private func unlocked(_ account: AccountRecord) throws -> AccountRecord {
    try PingAM.unlockedByHand(account, hasPIN: false, isTamperedWith: { isTamperedWith })
  }

  // MARK: The rules

  @Test(
    arguments: [(nil, 6_100_001), ("", 6_100_001), ("biometricAvailable", 6_100_002), ("unheardof", 6_100_002)]
      as [(String?, Int)])
  func `Is locked with a policy of its own alone`(policy: String?, number: Int) throws {
    #expect {
      try locked(account, with: policy)
    } throws: { fault in
      (fault as? LockRefusal)?.number == number && "\(fault)".contains("deviceTampering, unheardOf")
    }
  }

  @Test func `At an AM that gave it no policy is not locked`() async throws {
    let world = try AMWorld()
    let account = try await world.enrolled()
    #expect(throws: LockRefusal.policyNotAttached("x", attached: [])) { try locked(account, with: "x") }
  }

  @Test(arguments: ["deviceTampering", "unheardOf"]) func `Is locked once, and unlocked once`(policy: String) throws {
    #expect(throws: LockRefusal.notLocked) { try self.unlocked(account) }
    let locked = try self.locked(account, with: policy)
    #expect(try lock(of: locked) == .byHand(policy: policy))
    #expect(throws: LockRefusal.lockedAlready(.byHand(policy: policy))) { try self.locked(locked) }
    let unlocked = try self.unlocked(locked)
    #expect(try lock(of: unlocked) == nil)
    #expect(throws: LockRefusal.notLocked) { try self.unlocked(unlocked) }
  }

  @Test func `Is not opened while a policy does not hold, and says what would make it hold`() throws {
    let locked = try self.locked(account)
    world.isTamperedWith.withLock { $0 = true }
    #expect(try lock(of: account) == .byPolicy(Self.tampering))
    #expect(throws: LockRefusal.lockedAlready(.byPolicy(Self.tampering))) { try self.locked(account) }
    #expect {
      try unlocked(account)
    } throws: { fault in
      fault as? LockRefusal == .heldByPolicy(Self.tampering) && "\(fault)".contains("approval-token log --verify")
    }
    // The user's own lock is removed, and the policy's stays.
    #expect(try lock(of: try unlocked(locked)) == .byPolicy(Self.tampering))
  }

  @Test func `Whose policy requires a PIN says how to choose one`() async throws {
    let world = try AMWorld()
    let account = try await world.enrolled(pin: pin("13579"), policies: #"{"biometricAvailable": {}}"#)
    #expect {
      try unlocked(account)
    } throws: { fault in
      fault as? LockRefusal == .heldByPolicy("biometricAvailable") && "\(fault)".contains("approval-token pin change")
    }
  }

  // MARK: Operations that a lock prevents

  @Test func `Takes messages in, and answers none until it is unlocked, also after a restart`() async throws {
    let locked = try self.locked(account)
    try world.vault.put(locked, nil)
    let push = try world.bring()
    for _ in 1...2 {
      let server = try world.server()
      let pending = try #require(try await server.pendingRequests().first)
      #expect(pending.withheld?.lock.contains("locked by hand with the policy deviceTampering") == true)
      #expect(pending.withheld?.contents.hasPrefix("push, sent at ") == true)
      #expect(pending.withheld?.contents.contains("says \"") == true)
      await #expect { try await server.open(pending) } throws: {
        if case TokenServerFault.locked(let how) = $0 { how.hasPrefix("locked by hand") } else { false }
      }
    }
    try world.vault.put(try unlocked(locked), nil)
    let server = try world.server()
    let waiting = try await server.pendingRequests()
    #expect(waiting.count == 1 && waiting.allSatisfy { $0.withheld == nil })
    _ = try await server.deliver(try await world.answer(server, .hold))
    #expect(world.am.verify(push) == .isTrue)
  }

  @Test(arguments: [Gesture.Kind.hold, .doublePress])
  func `Answers no request that was shown before`(gesture: Gesture.Kind) async throws {
    let push = try world.bring()
    let server = try world.server()
    let request = try await server.open(try #require(try await server.pendingRequests().first))
    let response = try #require(
      request.answered(by: Gesture(gesture, held: .seconds(1)), after: .seconds(1), idempotencyKey: "key"))
    try world.vault.put(try locked(account), nil)
    await #expect { try await server.seal(response) } throws: { "\($0)".contains("locked by hand") }
    #expect(world.am.verify(push) == .waiting)
    let waiting = try await server.pendingRequests()
    #expect(waiting.count == 1 && waiting.allSatisfy { $0.withheld != nil })
  }

  @Test func `Approves nothing with a PIN that had to wait`() async throws {
    let world = try AMWorld()
    let account = try await world.enrolled(pin: pin("13579"), policies: #"{"biometricAvailable": {}}"#)
    let push = try world.bring(.biometric)
    let server = try world.server()
    world.judge.waits.withLock { $0 = [.seconds(30)] }
    let sealed = Task { try await world.answer(server, .enter, pin: pin("13579")) }
    await world.timekeeper.untilAsleep()
    let locked = try PingAM.lockedByHand(
      try world.vault.account(account.id), with: "biometricAvailable", hasPIN: true, isTamperedWith: { false })
    try world.vault.put(locked, nil)
    world.timekeeper.advance(by: .seconds(30))
    await #expect { try await sealed.value } throws: { "\($0)".contains("locked by hand") }
    #expect(world.am.verify(push) == .waiting)
  }

  @Test func `Shows in pending also when a policy locks it`() async throws {
    _ = try world.bring()
    let server = try world.server()
    world.isTamperedWith.withLock { $0 = true }
    let pending = try #require(try await server.pendingRequests().first)
    #expect(pending.withheld?.lock.contains("its policy deviceTampering does not hold") == true)
    // When the policy holds again.
    world.isTamperedWith.withLock { $0 = false }
    #expect(try await server.pendingRequests().map(\.withheld) == [nil])
  }

  @Test func `Ends requests that expire while the account is locked`() async throws {
    try world.vault.put(try locked(account), nil)
    try world.bring()
    let server = try world.server()
    let transaction = try #require(try await server.pendingRequests().first).transaction
    world.timekeeper.advance(by: .seconds(121))
    #expect(try await server.pendingRequests().isEmpty)
    #expect(try world.vault.message(transaction)?.state == .expired)
  }
}
