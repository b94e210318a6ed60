import Glibc
import Synchronization

/// Watches every output from a thread of its own: a test's thread may be waiting for a program, and there is no other.
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
        // While the chip is away nothing is lit.
        let lit = [Bench.Line.red, .green, .blue, .buzzer].filter { (try? bench.isHigh($0)) == true }
        state.withLock { _ = $0.seen.insert(Set(lit)) }
        usleep(5000)
      }
    }
  }

  /// What was lit together at any time until now. Lines are read one after the other, and so may seem to be.
  func stop() -> Set<Set<Bench.Line>> {
    state.withLock { $0.isEnded = true }
    thread?.join()
    return state.withLock { $0.seen }
  }
}
