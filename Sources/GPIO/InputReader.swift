import CGPIOD

/// Reads one input: drains the kernel's edge queue, debounces, and compares the result with the level of the line.
struct InputReader {
  /// The size of the kernel's queue for a line requested with libgpiod 1.x. The kernel does not report dropped edges
  /// there.
  private static let kernelQueue = 16

  let line: RequestedLine
  private let input: InputLine
  private var debouncer: Debouncer
  private var lastSequence: UInt = 0

  init(_ input: InputLine, of chip: Chip, consumer: String) throws(GPIOError) {
    self.input = input
    line = try RequestedLine(input, of: chip, consumer: consumer)
    debouncer = Debouncer(window: input.debounce, isActive: try line.isActive())
  }

  var nextMoment: Duration? { debouncer.nextMoment }

  func opened(at now: Duration) throws(GPIOError) -> InputEvent {
    .opened(isActive: try line.isActive(), at: now)
  }

  /// Reads all waiting edges. The level that is read at the end is decisive, even if edges were lost.
  mutating func drain(now: Duration) throws(GPIOError) -> [InputEvent] {
    var events: [InputEvent] = []
    var count = 0
    var isComplete = true
    while let edge = try line.nextEdge() {
      count += 1
      isComplete = isComplete && (edge.sequence == 0 || UInt(edge.sequence) == lastSequence + 1)
      lastSequence = UInt(edge.sequence)
      events += Self.event(debouncer.edge(isActive: edge.is_active, at: .nanoseconds(edge.nanoseconds)))
    }
    let isActive = try line.isActive()
    if isComplete && (lastSequence > 0 || count < Self.kernelQueue) {
      return events + Self.event(debouncer.level(isActive: isActive, at: now))
    }
    // The contact may have been released between lost edges, so discard the hold.
    debouncer = Debouncer(window: input.debounce, isActive: isActive)
    return [.unavailable(.edgesLost(offset: input.offset)), .opened(isActive: isActive, at: now)]
  }

  mutating func time(_ now: Duration) -> [InputEvent] { Self.event(debouncer.time(now)) }

  private static func event(_ edge: Debouncer.Edge?) -> [InputEvent] {
    edge.map { [.edge(isActive: $0.isActive, at: $0.at)] } ?? []
  }
}
