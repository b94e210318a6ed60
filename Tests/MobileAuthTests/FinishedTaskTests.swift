// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

/// The limit of tests that wait for a task.
@Suite("Waits for tasks", .timeLimit(.minutes(1))) struct FinishedTaskTests {
  private struct ExpectedError: Error {}

  @Test("The value of a task and its error are given") func ends() async throws {
    #expect(try await Task { 7 }.finished() == 7)
    await #expect(throws: ExpectedError.self) { try await Task { throw ExpectedError() }.finished() }
  }

  @Test("A task that does not end fails the test with the line, and is canceled") func limit() async throws {
    let endless = Task<Void, any Error> { try await Task.sleep(for: .seconds(3600)) }
    await withKnownIssue {
      await #expect(throws: CancellationError.self) { try await endless.finished(within: .milliseconds(1)) }
    } matching: {
      "\($0)".contains("FinishedTaskTests.swift:17: the end of a task")
    }
    #expect(endless.isCancelled)
  }
}
