// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

/// Outcomes of answers that arrive when the panel no longer waits for them.
@Suite(.timeLimit(.minutes(1))) struct DeliveriesTests {
  private let fixture = HandlerFixture()

  /// Two answers that were found wrong while the loop was busy.
  private func wrongEntries() async throws -> Deliveries {
    let deliveries = fixture.handler.deliveries
    for (number, server) in [fixture.server, fixture.otherServer].enumerated() {
      deliveries.start(HandlerFixture.transaction(number), to: server.id, as: .answer) { _ in
        .retryEntry(
          shows: .pinWrong(remaining: number),
          after: .pinIncorrect(FailureCounts(max: 3, previous: 3 - number)))
      }
    }
    try await eventually("nothing is delivered any more") { deliveries.underway.isEmpty }
    return deliveries
  }

  /// Fails if the user is asked for the PIN again without having seen that it was wrong.
  @Test("After a request was on the panel, a late outcome of its answer is shown, and those of others are not")
  func late() async throws {
    let deliveries = try await wrongEntries()
    #expect(deliveries.hasOutcomes)
    try deliveries.discardOutcomes(except: HandlerFixture.transaction(1))
    #expect(try deliveries.takeIndications() == [.pinWrong(remaining: 1)])
    #expect(!deliveries.hasOutcomes)
  }

  @Test("After a panel task, no late outcome is shown") func panelTask() async throws {
    let deliveries = try await wrongEntries()
    try deliveries.discardOutcomes(except: nil)
    #expect(!deliveries.hasOutcomes)
  }
}
