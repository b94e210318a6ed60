// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import RelayProtocol

@Suite("Pace of replies", .timeLimit(.minutes(5))) struct RelayPaceTests {
  @Test("A flood is slowed down to the limit, and fewer replies do not wait") func flood() async throws {
    let began = ContinuousClock.now
    var pace = RelayPace(limit: 10, in: .milliseconds(100))
    for _ in 1...30 { try await pace.wait() }
    #expect(ContinuousClock.now - began >= .milliseconds(300))
    var calm = RelayPace(limit: 10, in: .seconds(3600))
    for _ in 1...9 { try await calm.wait() }
  }

  @Test("A canceled task does not wait") func canceled() async throws {
    let task = Task { () -> RelayError? in
      var pace = RelayPace(limit: 1, in: .seconds(3600))
      do throws(RelayError) { try await pace.wait() } catch { return error }
      return nil
    }
    task.cancel()
    #expect(try await task.finished() == RelayError.canceled)
  }
}
