import CGPIOD

/// The edges of one input as the kernel has queued them, debounced. Knows no hardware: the edges come from a function.
struct EdgeQueue {
  /// The kernel keeps this many edges of a line requested as libgpiod 1.x does, and says nothing of those it drops.
  private static let kernelQueue = 16
  /// Edges that are taken at a time: a line that swings faster than its edges are read must not keep the thread.
  static let most = 1024

  private let offset: Int
  private let window: Duration
  private var debouncer: Debouncer
  private var lastSequence: UInt = 0

  init(_ input: InputLine, isActive: Bool) {
    (offset, window) = (input.offset, input.debounce)
    debouncer = Debouncer(window: window, isActive: isActive)
  }

  var nextMoment: Duration? { debouncer.nextMoment }

  /// Takes what waits. Whatever was lost, the level read at the end is the last word.
  /// - Parameters:
  ///   - next: the next edge that waits, nil if there is none.
  ///   - level: whether the line is active.
  mutating func drain(
    now: Duration, next: () throws(GPIOError) -> approval_gpio_edge?, level: () throws(GPIOError) -> Bool
  ) throws(GPIOError) -> [InputEvent] {
    var events: [InputEvent] = []
    var count = 0
    var isComplete = true
    while count < Self.most, let edge = try next() {
      count += 1
      // The kernel's count has 32 bits, as many as UInt has on some boards.
      isComplete = isComplete && (edge.sequence == 0 || UInt(edge.sequence) == lastSequence &+ 1)
      lastSequence = UInt(edge.sequence)
      events += Self.event(debouncer.edge(isActive: edge.is_active, at: .nanoseconds(edge.nanoseconds)))
    }
    let isActive = try level()
    if isComplete, count < Self.most, lastSequence > 0 || count < Self.kernelQueue {
      return events + Self.event(debouncer.level(isActive: isActive, at: now))
    }
    // A hold that may have been two presses is none.
    debouncer = Debouncer(window: window, isActive: isActive)
    return [.unavailable(.edgesLost(offset: offset)), .opened(isActive: isActive, at: now)]
  }

  mutating func time(_ now: Duration) -> [InputEvent] { Self.event(debouncer.time(now)) }

  private static func event(_ edge: Debouncer.Edge?) -> [InputEvent] {
    edge.map { [.edge(isActive: $0.isActive, at: $0.at)] } ?? []
  }
}
