// SPDX-License-Identifier: Apache-2.0
/// A condition that a test waited for and that was not true in time.
package struct ConditionTimeoutError: Error, CustomStringConvertible {
  package let description: String
}

/// Waits until `condition` holds, which other tasks of this process make true. It polls without sleeping at first,
/// because tests on a manual clock expect the condition within some turns of the executor, then once per millisecond.
/// - Parameters:
///   - what: named in the error, with the source location of the call.
///   - limit: in real time. Only a failing test waits until the limit.
/// - Throws: `ConditionTimeoutError` after the limit, `CancellationError` when the test is canceled.
package func eventually(
  _ what: String = "the condition", within limit: Duration = .seconds(60), file: String = #fileID, line: Int = #line,
  isolation: isolated (any Actor)? = #isolation, _ condition: () async throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  var turns = 0
  while try await !condition() {
    try Task.checkCancellation()
    guard ContinuousClock.now < deadline else {
      throw ConditionTimeoutError(description: "\(file):\(line): not within \(limit): \(what)")
    }
    turns += 1
    if turns < 10_000 { await Task.yield() } else { try await Task.sleep(for: .milliseconds(1)) }
  }
}
