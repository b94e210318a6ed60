import CGPIOD
import Testing

@testable import GPIO

@Suite(.timeLimit(.minutes(5))) struct EdgeQueueTests {
  private func edge(_ isActive: Bool, _ sequence: UInt) -> approval_gpio_edge {
    approval_gpio_edge(nanoseconds: .max, is_active: isActive, sequence: sequence)
  }

  /// Never returns where all edges that wait are taken.
  @Test("A line that swings faster than its edges are read gives way, and says that edges were lost")
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

  /// Ends the test process where the count is computed with `+`.
  @Test("The count of edges may reach the largest number and begin again")
  func countAtItsEnd() throws {
    var queue = EdgeQueue(InputLine(offset: 7), isActive: false)
    var waiting = [edge(true, .max), edge(false, 1)]
    let events = try queue.drain(
      now: .seconds(1), next: { () throws(GPIOError) in waiting.isEmpty ? nil : waiting.removeFirst() },
      level: { () throws(GPIOError) in false })
    #expect(events.first == .unavailable(.edgesLost(offset: 7)))
  }
}
