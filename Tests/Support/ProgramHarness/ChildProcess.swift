// SPDX-License-Identifier: Apache-2.0
import CSpawn
import Foundation
import Glibc
import Synchronization

/// A program that runs during the test. It is killed with this object.
package final class ChildProcess: Sendable {
  package enum Exit: Sendable, Equatable {
    case code(Int32)
    case signal(Int32)
  }

  package struct ChildProcessError: Error, CustomStringConvertible {
    package let description: String
  }

  package let output: Transcript
  package let errors: Transcript
  private let life: Life

  /// Only a process that was not waited for can be signaled: its number may be reused after that.
  private final class Life: Sendable {
    let process: pid_t
    let exit = Observed(Exit?.none)
    private let isReaped = Mutex(false)

    init(_ process: pid_t) { self.process = process }

    func send(_ signal: Int32) {
      isReaped.withLock { if !$0 { kill(process, signal) } }
    }

    func reap() {
      var information = siginfo_t()
      while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
      var status: Int32 = 0
      isReaped.withLock {
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        $0 = true
      }
      let signal = status & 0x7F
      exit.change { [status] in $0 = signal == 0 ? .code(status >> 8 & 0xFF) : .signal(signal) }
    }
  }

  /// - Parameter input: the data on standard input; none by default.
  package init(_ program: String, _ arguments: [String], input: String = "") throws {
    let name = (program as NSString).lastPathComponent
    let (process, outputEnd, errorEnd) = try spawn(program, arguments, input)
    output = Transcript("\(name)'s standard output", reading: outputEnd)
    errors = Transcript("\(name)'s standard error", reading: errorEnd)
    life = Life(process)
    Thread.detachNewThread { [life] in life.reap() }
  }

  deinit { life.send(SIGKILL) }

  package var processID: Int32 { life.process }
  package var isRunning: Bool { life.exit.value == nil }

  package func send(_ signal: Int32) { life.send(signal) }

  @discardableResult
  package func exit(within limit: Duration = patience) async throws -> Exit {
    guard let exit = await life.exit.first(within: limit, { $0 }) else {
      throw OutputTimeoutError(description: "the end of process \(life.process) within \(limit)")
    }
    return exit
  }

  /// Sends `kill -9`, and waits until the process has ended.
  package func kill9() async throws {
    send(SIGKILL)
    try await exit()
  }
}

/// Pipes are created and marked close-on-exec in two steps; no other child may be started in between.
private let nursery = Mutex(())

private func spawn(
  _ program: String, _ arguments: [String], _ input: String
) throws -> (pid_t, outputEnd: Int32, errorEnd: Int32) {
  try nursery.withLock { _ in
    let (inputRead, inputWrite) = try pipe()
    let (outputRead, outputWrite) = try pipe()
    let (errorRead, errorWrite) = try pipe()
    defer { for end in [inputRead, inputWrite, outputWrite, errorWrite] { close(end) } }
    // Short enough for the pipe's buffer, so the write does not block.
    let bytes = Array(input.utf8)
    guard bytes.count <= 4096, write(inputWrite, bytes, bytes.count) == bytes.count else {
      throw ChildProcess.ChildProcessError(description: "too much standard input")
    }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, end) in [inputRead, outputWrite, errorWrite].enumerated() {
      posix_spawn_file_actions_adddup2(&actions, end, Int32(number))
    }
    // Foundation's `Process` waits until the last copy of a descriptor is closed that it gives its child: a child of
    // this function that was started in between would keep it waiting.
    posix_spawn_file_actions_addclosefrom_np(&actions, 3)
    // A thread of this process may have signals blocked; the child must not inherit that.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var argv = ([program] + arguments).map { strdup($0) } + [nil]
    var envp = ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in argv + envp { free(text) } }
    var process: pid_t = 0
    let code = posix_spawnp(&process, program, &actions, &attributes, &argv, &envp)
    guard code == 0 else {
      close(outputRead)
      close(errorRead)
      throw ChildProcess.ChildProcessError(description: "cannot start \(program): \(String(cString: strerror(code)))")
    }
    return (process, outputRead, errorRead)
  }
}

private func pipe() throws -> (read: Int32, write: Int32) {
  var ends: [Int32] = [-1, -1]
  guard Glibc.pipe(&ends) == 0 else { throw ChildProcess.ChildProcessError(description: "no more pipes") }
  for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  return (ends[0], ends[1])
}
