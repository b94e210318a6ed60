// SPDX-License-Identifier: Apache-2.0
/// What a test waited for and that did not come in time.
package struct WaitTimeoutError: Error, CustomStringConvertible {
  package let description: String
}

/// Waits until `condition` holds, which other tasks of this process make true. It polls without sleeping at first,
/// because tests on a manual clock expect the condition within some turns of the executor, then once per millisecond.
/// - Parameters:
///   - what: named in the error, with the source location of the call.
///   - limit: in real time. Only a failing test waits until the limit.
/// - Throws: `WaitTimeoutError` after the limit, `CancellationError` when the test is canceled.
package func eventually(
  _ what: String, within limit: Duration = .seconds(60), file: String = #fileID, line: Int = #line,
  isolation: isolated (any Actor)? = #isolation, _ condition: () async throws -> Bool
) async throws {
  var turns = 0
  try await poll(what, within: limit, at: "\(file):\(line)", for: { try await condition() ? () : nil }) {
    turns += 1
    if turns < 10_000 { await Task.yield() } else { try await Task.sleep(for: .milliseconds(1)) }
  }
}

/// Waits until `find` returns a value: of something outside this process that can only be polled, every 40 ms.
/// - Parameters: as above.
/// - Throws: as above.
// A closure with a Bool is a condition, not a value that is there also if it is false.
@_disfavoredOverload
package func eventually<Found>(
  _ what: String, within limit: Duration = .seconds(60), file: String = #fileID, line: Int = #line,
  isolation: isolated (any Actor)? = #isolation, _ find: () async throws -> Found?
) async throws -> Found {
  try await poll(what, within: limit, at: "\(file):\(line)", for: find) {
    try await Task.sleep(for: .milliseconds(40))
  }
}

private func poll<Found>(
  _ what: String, within limit: Duration, at place: String, isolation: isolated (any Actor)? = #isolation,
  for find: () async throws -> Found?, pause: () async throws -> Void
) async throws -> Found {
  let deadline = ContinuousClock.now + limit
  while true {
    if let found = try await find() { return found }
    try Task.checkCancellation()
    guard ContinuousClock.now < deadline else {
      throw WaitTimeoutError(description: "\(place): not within \(limit): \(what)")
    }
    try await pause()
  }
}
