// SPDX-License-Identifier: Apache-2.0
import Synchronization

extension AsyncStream where Element: Sendable {
  /// The elements until the first for which `isLast` is true, or until the end of the stream, in place of a loop, which
  /// would wait without a limit. At the limit the test fails with an issue that names what it waited for.
  /// - Parameters:
  ///   - what: the last element, or the end.
  ///   - limit: in real time. Only a failing test waits until the limit.
  /// - Returns: those that came in time.
  package func elements(
    until what: String, within limit: Duration = .seconds(60), file: String = #fileID, line: Int = #line,
    _ isLast: @escaping @Sendable (Element) -> Bool = { _ in false }
  ) async -> [Element] {
    let elements = Mutex<[Element]>([])
    let reading = Task {
      for await element in self {
        elements.withLock { $0.append(element) }
        if isLast(element) { break }
      }
    }
    _ = try? await reading.finished(what, within: limit, file: file, line: line)
    return elements.withLock { $0 }
  }
}
