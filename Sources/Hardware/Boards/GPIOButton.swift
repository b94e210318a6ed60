// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import GPIO
import MobileAuth
import Synchronization

/// The board's button, made from one or two lines.
final class GPIOButton: Button {
  /// The maximum number of waiting events. A reader that is late by more has missed presses, and hears so.
  static let capacity = 64

  let events: AsyncStream<ButtonEvent>
  private let continuation: AsyncStream<ButtonEvent>.Continuation
  private let clock: any TokenClock
  private let state = Mutex(State())

  private struct State {
    var lines = TwoButtons()
    var hasLost = false
    /// Whether one of the lost events said that the chip is unavailable.
    var hasLostFault = false
  }

  init(clock: any TokenClock) {
    self.clock = clock
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.capacity))
  }

  /// Converts an event. Edges have times of the kernel's monotonic clock, the panel uses those of its own clock. Called
  /// by one thread at a time.
  func hear(_ input: Int, _ event: InputEvent) {
    guard let line = TwoButtons.Line(rawValue: input) else { return }
    let now = clock.now
    let monotonic = monotonicTime()
    let events = state.withLock { state in
      let events = state.lines.hear(line, event) { now + ($0 - monotonic) }
      guard state.hasLost else { return events }
      // Two presses must not become one hold.
      state.lines.void()
      let why = "presses were lost: the program was too slow"
      return [state.hasLostFault || events.contains(where: \.isFault) ? .unavailable(why) : .void(why)]
    }
    let lost = events.filter { if case .dropped = continuation.yield($0) { true } else { false } }
    if !events.isEmpty {
      state.withLock { ($0.hasLost, $0.hasLostFault) = (!lost.isEmpty, lost.contains(where: \.isFault)) }
    }
  }
}

extension ButtonEvent {
  fileprivate var isFault: Bool { if case .unavailable = self { true } else { false } }
}
