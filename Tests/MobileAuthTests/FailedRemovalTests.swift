// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

@Suite("A removal that cannot be stored", .timeLimit(.minutes(5))) struct FailedRemovalTests {
  /// Fails if the accounts are read again although nothing has changed: their new client would ask at once, and so on.
  @Test(
    "Is asked about again with growing pauses, and deleted when that is possible",
    arguments: [
      Validation(removedAccounts: [AccountID("A")]), Validation(disenrolledAccounts: [AccountID("A")]), nil,
    ], [StateStoreError.io(call: "write", reason: "disk full"), .corrupt(.auditHead)])
  func later(validation: Validation?, fault: StateStoreError) async throws {
    let fixture = HandlerFixture()
    if let validation {
      fixture.server.set(validation: validation)
    } else {
      fixture.server.breakDown("validate", .deviceDeregistered)
    }
    let listener = RequestListener(
      to: fixture.server, inbox: fixture.inbox, stateStore: fixture.stateStore, in: fixture.environment)
    fixture.stateStore.failRemoval(with: fault)
    let running = Task { try await listener.run() }
    defer { running.cancel() }
    for (attempt, pause) in [750, 1500].enumerated() {
      await fixture.clock.untilAsleep()
      #expect(fixture.server.calls(of: "validate") == attempt + 1)
      #expect(fixture.clock.untilNextWakes == .milliseconds(pause))
      #expect(fixture.inbox.connectivity[fixture.server.id] == .disconnected)
      #expect(fixture.events.all.count { $0 == .stateStoreFailed(fault) } == attempt + 1)
      #expect(!fixture.events.all.contains(.rosterChanged))
      if attempt == 0 { fixture.stateStore.failRemoval(with: fault) }
      fixture.clock.advance(by: .milliseconds(pause))
      try await eventually("validation \(attempt + 2)") { fixture.server.calls(of: "validate") == attempt + 2 }
    }
    try await eventually("the roster has changed") { fixture.events.all.contains(.rosterChanged) }
    #expect(fixture.stateStore.wipedServers == (validation == nil ? [fixture.server.id] : []))
    #expect(fixture.stateStore.wipedAccounts == (validation?.removedAccounts ?? []))
    #expect(fixture.stateStore.droppedKeys == (validation?.disenrolledAccounts ?? []))
    running.cancel()
    _ = try? await running.finished()
  }

  /// Fails if the other accounts of its server have no list until the damaged one can be deleted.
  @Test("A damaged account is left out when the accounts are read again") func damaged() async throws {
    let fixture = HandlerFixture()
    let fault = StateStoreError.corrupt(.account(AccountID("A")))
    fixture.server.set(validation: Validation(removedAccounts: [AccountID("A")]))
    fixture.stateStore.failRemoval(with: fault)
    let listener = RequestListener(
      to: fixture.server, inbox: fixture.inbox, stateStore: fixture.stateStore, in: fixture.environment)
    let running = Task { try await listener.run() }
    defer { running.cancel() }
    try await eventually("connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    #expect(fixture.events.all.contains(.stateStoreFailed(fault)) && fixture.events.all.contains(.rosterChanged))
    #expect(fixture.server.calls(of: "validate") == 1)
    running.cancel()
    _ = try? await running.finished()
  }
}
