// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Synchronization
import Testing

@testable import MobileAuth

@Suite("Openings in the background", .timeLimit(.minutes(1))) struct OpeningsTests {
  private let fixture = HandlerFixture()

  /// Fails, in the service now and then, if the handling loop sees that the request has left the list before the
  /// opening has returned why.
  @Test("Why a request could not be opened is shown, even if the request left the list first") func endedAndDelisted()
    async throws
  {
    let openings = Openings(changes: ChangeSignal(), in: fixture.environment)
    let request = fixture.request(1)
    _ = openings.start([request], listed: [request.transaction]) { [openings] _ in
      _ = openings.start([], listed: []) { _ in .ended([]) }
      return .ended([.mustEnroll])
    }
    var indications: [Indication]?
    try await eventually("an indication") {
      indications = openings.takeIndications()
      return indications != nil
    }
    #expect(indications == [.mustEnroll])
  }

  /// Fails, in the service now and then, if a request that its opening has ended is opened again.
  @Test("A request that left the list since the candidates were sorted is not opened") func delisted() async throws {
    let openings = Openings(changes: ChangeSignal(), in: fixture.environment)
    let opened = Mutex<[TransactionID]>([])
    _ = openings.start([fixture.request(1), fixture.request(2)], listed: [HandlerFixture.transaction(2)]) { request in
      opened.withLock { $0.append(request.transaction) }
      return .ended([.mustEnroll])
    }
    try await eventually("an indication") { openings.takeIndications() != nil }
    #expect(opened.withLock { $0 } == [HandlerFixture.transaction(2)])
  }

  @Test("An opening that was canceled has no result") func canceled() async throws {
    let changes = ChangeSignal()
    let openings = Openings(changes: changes, in: fixture.environment)
    let request = fixture.request(1)
    let generation = changes.generation
    _ = openings.start([request], listed: [request.transaction]) { [openings] _ in
      _ = openings.start([], listed: []) { _ in .ended([]) }
      throw TokenServerError.refused("late")
    }
    try await changes.wait(beyond: generation)
    #expect(openings.takeIndications() == nil)
    try openings.throwFault()
  }
}
