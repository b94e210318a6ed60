// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization

/// Watches every output on a separate thread: the test's own thread may wait for a program, and there is no other
/// thread.
final class Voltmeter {
  private struct State {
    var seen: Set<Set<Bench.Line>> = []
    var isEnded = false
  }

  private let state = Mutex(State())
  private var thread: Thread?

  init(_ bench: Bench) {
    thread = Thread { [self] in
      while !state.withLock({ $0.isEnded }) {
        // While the chip is removed, nothing is lit.
        let lit = [Bench.Line.red, .green, .blue, .buzzer].filter { (try? bench.isHigh($0)) == true }
        state.withLock { _ = $0.seen.insert(Set(lit)) }
        usleep(5000)
      }
    }
  }

  /// The combinations of outputs that were lit until now. Lines are read one after the other, so combinations may be
  /// apparent only.
  func stop() -> Set<Set<Bench.Line>> {
    state.withLock { $0.isEnded = true }
    thread?.join("the measurement")
    return state.withLock { $0.seen }
  }
}
