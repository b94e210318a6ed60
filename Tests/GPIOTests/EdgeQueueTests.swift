// SPDX-License-Identifier: Apache-2.0
import CGPIOD
import Testing

@testable import GPIO

@Suite(.timeLimit(.minutes(5))) struct EdgeQueueTests {
  private func edge(_ isActive: Bool, _ sequence: UInt) -> approval_gpio_edge {
    approval_gpio_edge(nanoseconds: .max, is_active: isActive, sequence: sequence)
  }

  /// Fails if one call takes all queued edges.
  @Test("A line with endless edges does not block the thread, and the loss of edges is reported")
  func endlessEdges() throws {
    var queue = EdgeQueue(InputLine(offset: 7), isActive: false)
    var given: UInt = 0
    let events = try queue.drain(
      now: .seconds(1),
      next: { () throws(GPIOError) in
        given += 1
        return given < 1_000_000 ? edge(given % 2 == 1, given) : nil
      }, level: { () throws(GPIOError) in true })
    #expect(given == UInt(EdgeQueue.most))
    #expect(events == [.unavailable(.edgesLost(offset: 7)), .opened(isActive: true, at: .seconds(1))])
  }

  /// Traps if the sequence number is computed with `+`.
  @Test("The sequence number of edges may wrap around")
  func countAtItsEnd() throws {
    var queue = EdgeQueue(InputLine(offset: 7), isActive: false)
    var waiting = [edge(true, .max), edge(false, 1)]
    let events = try queue.drain(
      now: .seconds(1), next: { () throws(GPIOError) in waiting.isEmpty ? nil : waiting.removeFirst() },
      level: { () throws(GPIOError) in false })
    #expect(events.first == .unavailable(.edgesLost(offset: 7)))
  }
}
