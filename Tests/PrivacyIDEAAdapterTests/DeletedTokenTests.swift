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
  @Test("A deleted token is reported when the server says so, after a minute and on new connections; others continue")
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
    #expect(fixture.http.requests.filter { $0.idleLimit == .zero }.map(\.method) == [.get, .post])
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

  /// The number of questions whether a token is deleted.
  private func questions(_ fixture: PrivacyIDEAFixture) -> Int { fixture.http.requests.count { $0.method == .post } }

  /// The server has one error for a deleted token and for a policy that is disabled for a while.
  @Test(
    "A token that exists stays while its polls are refused, and works afterwards",
    arguments: [FakePushServer.Product.privacyIDEA, .eduMFA])
  func refusedWithoutPolicy(product: FakePushServer.Product) async throws {
    let fixture = try PrivacyIDEAFixture(product, accounts: 2)
    fixture.server.challenge("PIPU0")
    fixture.server.state.withLock { $0.hasNoRegistrationURL = true }
    for _ in 0..<60 {
      #expect(try await fixture.token.pendingRequests().isEmpty)
      #expect(try await fixture.token.validate() == Validation())
      fixture.clock.advance(by: .seconds(2))
    }
    #expect(questions(fixture) == 2)
    #expect(fixture.server.state.withLock { $0.pollCounts } == ["PIPU0": 5, "PIPU1": 5])
    // A deletion in this time is noticed.
    fixture.server.state.withLock { $0.keys["PIPU1"] = nil }
    fixture.clock.advance(by: PollingPace.refused)
    #expect(try await fixture.token.pendingRequests().isEmpty)
    #expect(try await fixture.token.validate().disenrolledAccounts == [AccountID("account 1")])
    fixture.server.state.withLock { $0.hasNoRegistrationURL = false }
    fixture.clock.advance(by: PollingPace.refused)
    #expect(try await fixture.token.pendingRequests().map(\.account.text) == ["account 0"])
    #expect(fixture.events.troubles == Array(repeating: "\(PollError.notKnown)", count: 2))
  }

  @Test("The server is asked less and less often whether a token is deleted") func questionsBecomeRare() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.state.withLock { $0.hasNoRegistrationURL = true }
    for _ in 0..<4 {
      _ = try await fixture.token.pendingRequests()
      fixture.clock.advance(by: .seconds(2))
    }
    // A day.
    for _ in 0..<288 {
      fixture.clock.advance(by: .seconds(300))
      _ = try await fixture.token.pendingRequests()
    }
    #expect(fixture.server.state.withLock { $0.polls.count } == 292)
    #expect(questions(fixture) == 8)
  }

  /// - Parameter answer: that to the question whether the token is deleted; nil if it is lost.
  @Test(
    "Only the server's own word that a token is deleted counts",
    arguments: [
      HTTPResponse?.none, HTTPResponse(status: 404, body: Array("<h1>Not Found</h1>".utf8)), HTTPResponse(status: 503),
      FakePushServer.error(500, -500), FakePushServer.error(400, 905), FakePushServer.error(403, 303),
    ])
  func otherAnswers(answer: HTTPResponse?) async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.state.withLock { $0.keys["PIPU0"] = nil }
    for _ in 0..<4 {
      _ = try await fixture.token.pendingRequests()
      fixture.clock.advance(by: .seconds(15))
    }
    fixture.weather.forecast.withLock { $0 = [.fine, answer == nil ? .neverArrives : .fine] }
    fixture.server.state.withLock { $0.failures = [FakePushServer.error(400, 10)] + (answer.map { [$0] } ?? []) }
    _ = try await fixture.token.pendingRequests()
    #expect(questions(fixture) == 1)
    #expect(try await fixture.token.validate() == Validation())
    fixture.clock.advance(by: PollingPace.refused)
    _ = try await fixture.token.pendingRequests()
    #expect(questions(fixture) == 2)
    #expect(try await fixture.token.validate().disenrolledAccounts == [AccountID("account 0")])
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
