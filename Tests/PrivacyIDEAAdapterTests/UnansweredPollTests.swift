// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

@Suite("Polls that no server answers", .timeLimit(.minutes(5))) struct UnansweredPollTests {
  @Test(
    "A server that answers no poll is not connected, and each attempt polls all", arguments: [1, 2], [true, false])
  func noPollIsAnswered(accounts: Int, isOffline: Bool) async throws {
    let fixture = try PrivacyIDEAFixture(accounts: accounts)
    if isOffline { fixture.weather.forecast.withLock { $0 = Array(repeating: .neverArrives, count: 10) } }
    fixture.server.state.withLock { $0.failures = Array(repeating: FakePushServer.error(400, 905), count: 10) }
    for attempt in 1...3 {
      await #expect(throws: TokenServerError.self) {
        var hints = fixture.token.hints().makeAsyncIterator()
        _ = try await hints.next()
      }
      #expect(fixture.http.requests.count == attempt * accounts)
    }
  }

  @Test("An account that must not poll does not make an outage longer for the others") func outageBesideForbidden()
    async throws
  {
    let fixture = try PrivacyIDEAFixture(accounts: 2)
    fixture.server.state.withLock { $0.isPollingForbidden = ["PIPU0"] }
    _ = try await fixture.token.pendingRequests()
    fixture.clock.advance(by: .seconds(2))
    fixture.weather.forecast.withLock { $0 = [.neverArrives] }
    let error = await #expect(throws: TokenServerError.self) { try await fixture.token.pendingRequests() }
    if case .unreachable = error {} else { Issue.record("\(String(describing: error))") }
  }
}
