// SPDX-License-Identifier: Apache-2.0
import CSpawn
import FoundationEssentials
import Glibc
import Synchronization
import Threads

/// A program that this one has started. It ends when this program ends, also if this program is killed.
final class ChildProcess: Sendable {
  private struct State {
    var isReaped = false
    var status: Int32?
    var waiters: [CheckedContinuation<Int32, Never>] = []
  }

  let name: String
  /// Files with its standard output and its standard error.
  let outputFile: String
  let errorFile: String
  /// Where its part of the standard error begins; former ones with this name have written the rest.
  private let errorsBegin: off_t
  private let process: pid_t
  private let state = Mutex(State())

  /// - Parameters:
  ///   - command: the path of the program, and its arguments.
  ///   - input: standard input.
  ///   - folder: for its output, which may have secrets.
  static func start(_ name: String, _ command: [String], input: [UInt8] = [], folder: String) async throws
    -> ChildProcess
  {
    try await withCheckedThrowingContinuation { continuation in
      // One thread starts the program and waits for its end: the kernel ends the program when this thread ends.
      let hasStarted = detachThread {
        let child: ChildProcess
        do { child = try ChildProcess(name, command, input, folder) } catch {
          return continuation.resume(throwing: error)
        }
        continuation.resume(returning: child)
        child.reap()
      }
      if !hasStarted { continuation.resume(throwing: NoThreadError()) }
    }
  }

  private init(_ name: String, _ command: [String], _ input: [UInt8], _ folder: String) throws {
    self.name = name
    outputFile = "\(folder)/\(name).out"
    errorFile = "\(folder)/\(name).log"
    let inputFile = approval_memory_file()
    let output = open(outputFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    let errors = open(errorFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    defer { for file in [inputFile, output, errors] where file >= 0 { close(file) } }
    guard inputFile >= 0, output >= 0, errors >= 0, write(inputFile, input, input.count) == input.count,
      lseek(inputFile, 0, SEEK_SET) == 0
    else { throw BenchError("no files for \(name) in \(folder): \(String(cString: strerror(errno)))") }
    errorsBegin = lseek(errors, 0, SEEK_END)
    var arguments = (["/usr/bin/setpriv", "--pdeathsig", "TERM"] + command).map { strdup($0) } + [nil]
    var environment = ProcessEnvironment.variables.map { strdup($0) } + [nil]
    defer { for text in arguments + environment { free(text) } }
    var process: pid_t = 0
    let code = approval_spawn(&process, &arguments, &environment, "/", inputFile, output, errors)
    guard code == 0 else { throw BenchError("\(name) cannot be started: \(String(cString: strerror(code)))") }
    self.process = process
  }

  var isRunning: Bool { state.withLock { $0.status == nil } }

  /// Sends a signal, unless the program has ended.
  func send(_ signal: Int32) { state.withLock { if !$0.isReaped { kill(process, signal) } } }

  /// The exit status of wait(2).
  func end() async -> Int32 {
    await withCheckedContinuation { continuation in
      let status = state.withLock { state in
        if state.status == nil { state.waiters.append(continuation) }
        return state.status
      }
      if let status { continuation.resume(returning: status) }
    }
  }

  /// Sends SIGTERM, and SIGKILL if the program has not ended after some seconds.
  func stop() async {
    send(SIGTERM)
    let killer = Task {
      try await Task.sleep(for: .seconds(5))
      send(SIGKILL)
    }
    _ = await end()
    killer.cancel()
  }

  /// What the program has written to its standard output, at most 1 MiB.
  var output: String { text(of: outputFile, atMost: 1 << 20) }

  /// The beginning of what the program has written to its standard error.
  func errors(atMost limit: Int) -> String { text(of: errorFile, from: errorsBegin, atMost: limit) }

  private func reap() {
    var information = siginfo_t()
    while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    let waiters = state.withLock { state in
      var status: Int32 = 0
      // Its identifier is not reused until here, so no signal reaches another program.
      while waitpid(process, &status, 0) < 0, errno == EINTR {}
      state.isReaped = true
      state.status = status
      defer { state.waiters = [] }
      return state.waiters.map { ($0, status) }
    }
    for (waiter, status) in waiters { waiter.resume(returning: status) }
  }
}

/// The environment for programs that this one starts.
enum ProcessEnvironment {
  private static let names = ["PATH", "LANG", "HOME", "TMPDIR", "APPROVAL_TOKEN_BOARDS"]
  static let variables = names.compactMap { name in getenv(name).map { "\(name)=\(String(cString: $0))" } }
}

/// A text file from `start`, or its beginning; empty if it cannot be read.
func text(of file: String, from start: off_t = 0, atMost limit: Int) -> String {
  let descriptor = open(file, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return "" }
  defer { close(descriptor) }
  guard start == 0 || lseek(descriptor, start, SEEK_SET) == start else { return "" }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 16_384)
  while bytes.count < limit {
    let count = read(descriptor, &buffer, buffer.count)
    if count < 0, errno == EINTR { continue }
    guard count > 0 else { break }
    bytes += buffer[..<count]
  }
  return String(decoding: bytes.prefix(limit), as: UTF8.self)
}

/// Runs what blocks on a thread of its own.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    let hasStarted = detachThread { continuation.resume(with: Result { try body() }) }
    if !hasStarted { continuation.resume(throwing: NoThreadError()) }
  }
}

struct NoThreadError: Error, CustomStringConvertible {
  let description = "the system has no thread left"
}

/// Checks every 20 ms until the condition holds.
/// - Throws: after `limit`, and if the task is canceled.
func wait(
  _ limit: Duration, for what: String, until condition: @Sendable () async throws -> Bool
) async throws {
  let end = ContinuousClock.now + limit
  while try await !condition() {
    guard .now < end else { throw BenchError("timed out: \(what)") }
    try await Task.sleep(for: .milliseconds(20))
  }
}
