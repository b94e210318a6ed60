// SPDX-License-Identifier: Apache-2.0
/// Reads one input: what the kernel has queued, debounced, and held against the level itself.
struct InputReader {
  let line: RequestedLine
  private var queue: EdgeQueue

  init(_ input: InputLine, of chip: Chip, consumer: String) throws(GPIOError) {
    line = try RequestedLine(input, of: chip, consumer: consumer)
    queue = EdgeQueue(input, isActive: try line.isActive())
  }

  var nextDeadline: Duration? { queue.nextDeadline }
  var unsettledSince: Duration? { queue.unsettledSince }

  func opened(at now: Duration) throws(GPIOError) -> InputEvent {
    .opened(isActive: try line.isActive(), at: now)
  }

  mutating func drain(now: Duration) throws(GPIOError) -> [InputEvent] {
    let line = line
    return try queue.drain(
      now: now, next: { () throws(GPIOError) in try line.nextEdge() },
      level: { () throws(GPIOError) in try line.isActive() })
  }

  mutating func time(_ now: Duration) -> [InputEvent] { queue.time(now) }
}
