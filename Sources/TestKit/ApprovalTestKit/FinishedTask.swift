// SPDX-License-Identifier: Apache-2.0
import Synchronization

extension Task {
  /// The end of a task, in place of `value`, which would wait without a limit. At the limit the test fails with an
  /// issue that names the line.
  /// - Parameters:
  ///   - what: named in the issue.
  ///   - limit: in real time. Only a failing test waits until the limit.
  /// - Returns: its value.
  /// - Throws: the task's error; `CancellationError` at the limit, or when the test is canceled. The task is then
  ///   canceled too.
  @discardableResult package func finished(
    _ what: String = "the end of a task", within limit: Duration = .seconds(60), file: String = #fileID,
    line: Int = #line
  ) async throws -> Success {
    let end = TaskEnd<Success, Failure>()
    await BoundedWait.wait(for: { "\(file):\(line): \(what)" }, within: limit) { wait in
      _ = Task<Void, Never> {
        end.result = await self.result
        wait.resume()
      }
    }
    guard let result = end.result else {
      cancel()
      throw _Concurrency.CancellationError()
    }
    return try result.get()
  }
}

private final class TaskEnd<Success: Sendable, Failure: Error>: Sendable {
  private let state = Mutex(Result<Success, Failure>?.none)

  var result: Result<Success, Failure>? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
