// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization

/// The process groups of the scripts that run. They end with the server, unless it is killed.
final class ScriptGroups: Sendable {
  private struct State {
    var running: Set<pid_t> = []
    var hasEnded = false
  }

  private let state = Mutex(State())

  /// Whether the server ends.
  var hasEnded: Bool { state.withLock(\.hasEnded) }

  /// - Parameter spawn: starts a program in a process group of its own; nil if it cannot be started.
  /// - Returns: nil also if the server ends.
  func start(_ spawn: () -> pid_t?) -> pid_t? {
    state.withLock { state in
      guard !state.hasEnded, let child = spawn() else { return nil }
      state.running.insert(child)
      return child
    }
  }

  /// Kills a group. Until its first process is reaped, which must be after this, its number is not used again.
  func kill(_ child: pid_t) {
    state.withLock { state in
      state.running.remove(child)
      _ = Glibc.kill(-child, SIGKILL)
    }
  }

  /// Kills all groups. None is started any more.
  func end() {
    state.withLock { state in
      state.hasEnded = true
      for child in state.running { _ = Glibc.kill(-child, SIGKILL) }
    }
  }
}
