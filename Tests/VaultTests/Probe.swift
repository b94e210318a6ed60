// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Glibc
import Synchronization

/// A running `vault-crash-probe`, and the pipe on which it reports completed operations.
final class Probe {
  private let process: pid_t
  private let reports: Int32

  init(_ arguments: String...) throws {
    (process, reports) = try spawning.withLock { _ in
      try Self.spawn([BuiltProgram.path("vault-crash-probe")] + arguments)
    }
  }

  private static func spawn(_ words: [String]) throws -> (pid_t, Int32) {
    var pipes: [Int32] = [0, 0]
    guard pipe(&pipes) == 0 else { throw ProbeError(what: "pipe", code: errno) }
    defer { close(pipes[1]) }
    for end in pipes { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1)
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    var process = pid_t()
    let code = posix_spawn(&process, words[0], &actions, nil, arguments, environ)
    guard code == 0 else { throw ProbeError(what: "posix_spawn \(words[0])", code: code) }
    return (process, pipes[0])
  }

  deinit { close(reports) }

  /// Waits until `count` more operations have completed, or the process has ended.
  /// - Returns: the number of completed operations.
  func awaitReports(_ count: Int = .max) -> Int {
    var got = 0
    var byte: UInt8 = 0
    while got < count, read(reports, &byte, 1) == 1 { got += 1 }
    return got
  }

  /// Sends SIGKILL.
  func kill() { Glibc.kill(process, SIGKILL) }

  /// - Returns: the exit code, or nil if a signal ended the process.
  @discardableResult
  func waitForEnd() -> Int32? {
    var status: Int32 = 0
    waitpid(process, &status, 0)
    return status & 0x7F == 0 ? status >> 8 & 0xFF : nil
  }
}

/// Serializes starts: a probe must not inherit the pipe of another one, or the end of that probe would not be detected.
private let spawning = Mutex(())

struct ProbeError: Error {
  let what: String
  let code: Int32
}
