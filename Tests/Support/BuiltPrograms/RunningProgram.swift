// SPDX-License-Identifier: Apache-2.0
import CSpawn
import Glibc
import Synchronization

/// The result of a finished program.
package struct ProgramOutput: Sendable {
  package let status: Int32
  package let bytes: [UInt8]
  package let errors: String

  package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// Runs a program to its end, or for two minutes: then its status is 124.
package func run(_ program: String, _ arguments: [String], input: [UInt8]? = nil) throws -> ProgramOutput {
  let (output, errors) = (try MemoryFile(), try MemoryFile())
  let standardInput = try input.map { try MemoryFile($0) }
  let child = try Child(
    ["/usr/bin/timeout", "120", program] + arguments, input: standardInput?.descriptor, output: output.descriptor,
    errors: errors.descriptor)
  let status = child.waitForEnd()
  return ProgramOutput(
    status: status, bytes: output.contents, errors: String(decoding: errors.contents, as: UTF8.self))
}

/// A running program whose output is read line by line.
package final class RunningProgram: @unchecked Sendable {
  private let child: Child
  private let output: Int32
  /// Used only by the test that owns the program.
  private var buffer: [UInt8] = []

  /// - Parameters:
  ///   - program: its path.
  ///   - input: what it reads; nil for none.
  ///   - errors: the file for its standard error, which is replaced; nil for none.
  package init(_ program: String, _ arguments: [String], input: [UInt8]? = nil, errors: String? = nil) throws {
    let standardInput = try input.map { try MemoryFile($0) }
    var ends: [Int32] = [-1, -1]
    guard approval_pipe(&ends) == 0 else { throw ProgramError(description: "no pipe: errno \(errno)") }
    let log = errors.map { open($0, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o644) }
    defer {
      close(ends[1])
      if let log { close(log) }
    }
    output = ends[0]
    do {
      child = try withExtendedLifetime(standardInput) {
        try Child([program] + arguments, input: standardInput?.descriptor, output: ends[1], errors: log ?? -1)
      }
    } catch {
      close(ends[0])
      throw error
    }
  }

  deinit {
    child.send(SIGKILL)
    _ = child.waitForEnd()
    close(output)
  }

  /// - Returns: nil when the program has closed its output, or has written nothing for a minute.
  package func nextLine() -> String? {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeSubrange(...end)
        return line.hasSuffix("\r") ? String(line.dropLast()) : line
      }
      guard isReadable(output, within: .seconds(60)) else { return nil }
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = repeated { read(output, &bytes, bytes.count) }
      guard count > 0 else { return nil }
      buffer += bytes[..<count]
    }
  }

  package var processIdentifier: Int32 { child.process }

  package var isRunning: Bool { !child.hasEnded }

  package func send(_ signal: Int32) { child.send(signal) }

  /// Kills the program if it has not ended after a minute.
  /// - Returns: the exit status, or the number of the signal that ended it.
  @discardableResult
  package func waitForEnd() -> Int32 {
    let deadline = ContinuousClock.now + .seconds(60)
    while !child.hasEnded, ContinuousClock.now < deadline { usleep(1000) }
    child.send(SIGKILL)
    return child.waitForEnd()
  }
}

private struct ProgramError: Error, CustomStringConvertible {
  let description: String
}

/// Calls `body` until it is not interrupted by a signal.
private func repeated<Result: SignedInteger>(_ body: () -> Result) -> Result {
  while true {
    let result = body()
    if result >= 0 || errno != EINTR { return result }
  }
}

/// A started process. Not Foundation's `Process`, whose `run` has faulted while tests started many at a time.
private final class Child: Sendable {
  let process: pid_t
  /// The exit status, or the number of the signal, once the process was waited for: its number may be reused then.
  private let status = Mutex(Int32?.none)

  /// That of this process at its start.
  private static let environment =
    (try? wholeText(of: "/proc/self/environ"))?.split(separator: "\0").map(String.init) ?? []

  /// - Parameters:
  ///   - input: nil for no input.
  ///   - errors: -1 for none.
  init(_ command: [String], input: Int32? = nil, output: Int32, errors: Int32) throws {
    let nothing = input == nil ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1
    var arguments = command.map { strdup($0) } + [nil]
    var environment = Self.environment.map { strdup($0) } + [nil]
    defer {
      for text in arguments + environment { free(text) }
      if nothing >= 0 { close(nothing) }
    }
    var child: pid_t = 0
    let error = approval_spawn(&child, &arguments, &environment, ".", input ?? nothing, output, errors)
    guard error == 0 else {
      throw ProgramError(description: "cannot start \(command[0]): \(String(cString: strerror(error)))")
    }
    process = child
  }

  func send(_ signal: Int32) { status.withLock { if $0 == nil { kill(process, signal) } } }

  var hasEnded: Bool {
    var information = siginfo_t()
    return status.withLock { status in
      guard status == nil else { return true }
      let options = WEXITED | WNOHANG | WNOWAIT
      return repeated { waitid(P_PID, id_t(process), &information, options) } == 0 && information.si_signo == SIGCHLD
    }
  }

  func waitForEnd() -> Int32 {
    var information = siginfo_t()
    if status.withLock({ $0 == nil }) {
      _ = repeated { waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) }
    }
    return status.withLock { known in
      if let known { return known }
      var raw: Int32 = 0
      _ = repeated { waitpid(process, &raw, 0) }
      let signal = raw & 0x7F
      let status = signal == 0 ? raw >> 8 & 0xFF : signal
      known = status
      return status
    }
  }
}

/// A file in memory.
private final class MemoryFile {
  let descriptor: Int32

  init(_ contents: [UInt8] = []) throws {
    descriptor = approval_memory_file()
    guard descriptor >= 0, pwrite(descriptor, contents, contents.count, 0) == contents.count else {
      throw ProgramError(description: "no file in memory: errno \(errno)")
    }
  }

  deinit { close(descriptor) }

  var contents: [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(0, Int(lseek(descriptor, 0, SEEK_END))))
    let count = pread(descriptor, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(0, count)))
  }
}
