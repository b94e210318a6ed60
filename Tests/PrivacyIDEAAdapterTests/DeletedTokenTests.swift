// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

/// Tokens that the server no longer accepts.
@Suite(.timeLimit(.minutes(5))) struct DeletedTokenTests {
  /// Refusals are not signed: a proxy that ends TLS for a moment must not have the keys deleted.
  @Test("A deleted token is reported after refusals over a minute and two connections, and the others continue")
  func deletedTokenIsReported() async throws {
    let fixture = try PrivacyIDEAFixture(accounts: 2)
    fixture.server.challenge("PIPU1")
    fixture.server.state.withLock { $0.keys["PIPU0"] = nil }
    for _ in 0..<29 {
      #expect(try await fixture.token.pendingRequests().map(\.account.text) == ["account 1"])
      #expect(try await fixture.token.validate() == Validation())
      fixture.clock.advance(by: .seconds(2))
    }
    #expect(fixture.server.state.withLock { $0.pollCounts["PIPU0"] } == 4)
    #expect(fixture.http.requests.filter { $0.idleLimit == .zero }.isEmpty)
    fixture.clock.advance(by: .seconds(2))
    _ = try await fixture.token.pendingRequests()
    #expect(try await fixture.token.validate().disenrolledAccounts == [AccountID("account 0")])
    #expect(fixture.http.requests.filter { $0.idleLimit == .zero }.count == 1)
    #expect(fixture.events.troubles == ["\(PollError.notKnown)"])
    let polls = fixture.server.state.withLock { $0.polls.count }
    fixture.clock.advance(by: .seconds(2))
    _ = try await fixture.token.pendingRequests()
    #expect(fixture.server.state.withLock { $0.polls.count } == polls + 1)
  }

  @Test("A token that is accepted in the last poll stays") func acceptedInTheLastPoll() async throws {
    let fixture = try PrivacyIDEAFixture()
    let key = fixture.server.state.withLock { $0.keys["PIPU0"].take() }
    for _ in 0..<30 {
      _ = try await fixture.token.pendingRequests()
      fixture.clock.advance(by: .seconds(2))
    }
    fixture.server.state.withLock { $0.keys["PIPU0"] = key }
    fixture.server.challenge("PIPU0")
    #expect(try await fixture.token.pendingRequests().count == 1)
    #expect(try await fixture.token.validate() == Validation())
  }

  @Test("A refusal now and then is not the end") func refusalNowAndThenIsNotTheEnd() async throws {
    let fixture = try PrivacyIDEAFixture()
    for _ in 0..<4 {
      for _ in 0..<4 { fixture.server.state.withLock { $0.failures.append(FakePushServer.error(400, 10)) } }
      for _ in 0..<5 {
        _ = try await fixture.token.pendingRequests()
        fixture.clock.advance(by: .seconds(2))
      }
    }
    #expect(try await fixture.token.validate() == Validation())
  }

  /// The board's clock is five minutes behind, and the server refuses its time stamps with the code of a wrong
  /// signature.
  @Test(
    "A wrong clock does not end a token", arguments: [true, false], [Duration?.none, .zero, .seconds(300)])
  func wrongClock(sendsTime: Bool, dateDrift: Duration?) async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0")
    fixture.server.state.withLock { state in
      (state.drift, state.sendsTime, state.dateDrift) = (.seconds(300), sendsTime, dateDrift.map { $0 - .seconds(300) })
    }
    var listed = 0
    for _ in 0..<60 {
      listed += (try? await fixture.token.pendingRequests().count) ?? 0
      #expect(try await fixture.token.validate() == Validation())
      fixture.clock.advance(by: .seconds(2))
    }
    // The `Date` of a proxy helps only if it has the server's time.
    #expect((listed > 0) == (sendsTime || dateDrift == .seconds(300)))
  }
}
