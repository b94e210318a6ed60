// SPDX-License-Identifier: Apache-2.0
import CGPIOD

/// Debounces the queued edges of one input. Independent of hardware: a function supplies the edges.
struct EdgeQueue {
  /// The length of the kernel's queue for a line requested with libgpiod 1.x. The kernel does not report the edges that
  /// it drops.
  private static let kernelQueue = 16
  /// The maximum number of edges per call, so that a line with endless edges cannot block the thread.
  static let most = 1024

  private let offset: Int
  private let window: Duration
  private var debouncer: Debouncer
  private var lastSequence: UInt = 0

  init(_ input: InputLine, isActive: Bool) {
    (offset, window) = (input.offset, input.debounce)
    debouncer = Debouncer(window: window, isActive: isActive)
  }

  var nextDeadline: Duration? { debouncer.nextDeadline }
  var unsettledSince: Duration? { debouncer.unsettledSince }

  /// Processes the queued edges. If edges were lost, the level read at the end determines the state.
  /// - Parameters:
  ///   - next: returns the next queued edge; nil if the queue is empty.
  ///   - level: returns whether the line is active.
  mutating func drain(
    now: Duration, next: () throws(GPIOError) -> approval_gpio_edge?, level: () throws(GPIOError) -> Bool
  ) throws(GPIOError) -> [InputEvent] {
    var events: [InputEvent] = []
    var count = 0
    var isComplete = true
    while count < Self.most, let edge = try next() {
      count += 1
      // The kernel's sequence number has 32 bits, and so has UInt on some boards: `+` would overflow.
      isComplete = isComplete && (edge.sequence == 0 || UInt(edge.sequence) == lastSequence &+ 1)
      lastSequence = UInt(edge.sequence)
      events += Self.event(debouncer.edge(isActive: edge.is_active, at: .nanoseconds(edge.nanoseconds)))
    }
    let isActive = try level()
    if isComplete, count < Self.most, lastSequence > 0 || count < Self.kernelQueue {
      return events + Self.event(debouncer.level(isActive: isActive, at: now))
    }
    // A hold with lost edges does not count: it may have been two presses.
    debouncer = Debouncer(window: window, isActive: isActive)
    return [.unavailable(.edgesLost(offset: offset)), .opened(isActive: isActive, at: now)]
  }

  mutating func time(_ now: Duration) -> [InputEvent] { Self.event(debouncer.time(now)) }

  private static func event(_ edge: Debouncer.Edge?) -> [InputEvent] {
    edge.map { [.edge(isActive: $0.isActive, at: $0.at)] } ?? []
  }
}
