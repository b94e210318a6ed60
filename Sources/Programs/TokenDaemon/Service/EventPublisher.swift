// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import Synchronization
import Threads

/// Publishes events to programs that follow the service. A follower that reads too slowly loses the oldest events that
/// it has not read; the sequence numbers show that.
final class EventPublisher: Sendable {
  /// The number of past events that are kept.
  static let mostKept = 64
  /// The number of events that are kept for each follower until it reads them.
  static let longestBacklog = 256

  private struct State {
    var sequence: Int64 = 0
    var past: [EventLine] = []
    var followers = StreamFollowers<EventLine>()
  }

  private let state = Mutex(State())
  private let clock: any TokenClock

  init(clock: any TokenClock) { self.clock = clock }

  /// Publishes the event, if programs are notified of events of its kind.
  func publish(_ event: TokenEvent) {
    let moment = clock.wallClockMilliseconds
    state.withLock { state in
      guard let line = EventLine(event, sequence: state.sequence + 1, atMilliseconds: moment) else { return }
      state.sequence += 1
      if state.past.count == Self.mostKept { state.past.removeFirst() }
      state.past.append(line)
      state.followers.send(line)
    }
  }

  /// The newest events of the past, oldest first.
  var past: [EventLine] { state.withLock { $0.past } }

  /// Streams the events from now on. The first line is `following`, with the number of the last event before it.
  func following() -> AsyncStream<EventLine> {
    let moment = clock.wallClockMilliseconds
    return AsyncStream(bufferingPolicy: .bufferingNewest(Self.longestBacklog)) { continuation in
      state.withLock { state in
        state.followers.add(
          continuation, first: EventLine("following", sequence: state.sequence, atMilliseconds: moment))
      }
    }
  }
}
