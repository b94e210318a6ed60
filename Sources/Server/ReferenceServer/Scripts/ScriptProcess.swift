// SPDX-License-Identifier: Apache-2.0
import CSpawn
import Glibc
import Threads
import TokenServerCore

/// One run of a program: bytes in, bytes out, with a time limit. The program and everything that it started in its
/// process group is killed at the end. Blocks the calling thread.
struct ScriptProcess: Sendable {
  enum Ending: Equatable, Sendable {
    /// Ended with exit status 0; what it wrote.
    case output([UInt8])
    /// Or killed because the server ends.
    case notStarted
    /// Exceeded a limit, was killed, or ended with another status.
    case failed
  }

  /// The absolute path of the program, and its arguments.
  let command: [String]
  /// The working folder.
  let folder: String
  let timeLimit: Duration
  let outputLimit: Int
  /// Those of the server.
  var groups = ScriptGroups()

  func run(_ input: [UInt8]) -> Ending {
    let inputFile = approval_memory_file()
    guard inputFile >= 0 else { return .notStarted }
    defer { close(inputFile) }
    guard Self.write(input, to: inputFile), lseek(inputFile, 0, SEEK_SET) == 0 else { return .notStarted }
    var ends: [Int32] = [-1, -1]
    guard approval_pipe(&ends) == 0 else { return .notStarted }
    defer { close(ends[0]) }
    let child = groups.start { spawn(input: inputFile, output: ends[1]) }
    close(ends[1])
    guard let child else { return .notStarted }
    let deadline = Uptime.now() + timeLimit
    let output = read(ends[0], until: deadline)
    let hasEnded = output != nil && Self.wait(for: child, until: deadline)
    // The group can contain children of the program.
    groups.kill(child)
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    guard hasEnded, status == 0, let output else { return groups.hasEnded ? .notStarted : .failed }
    return .output(output)
  }

  private func spawn(input: Int32, output: Int32) -> pid_t? {
    var arguments = Self.copies(command)
    var environment = Self.copies(["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"])
    defer { for text in arguments + environment { free(text) } }
    var child: pid_t = 0
    let error = approval_spawn(&child, &arguments, &environment, folder, input, output, -1)
    return error == 0 ? child : nil
  }

  /// - Parameter deadline: on the clock of `Uptime`.
  /// - Returns: nil if the output is too long, or the deadline passed before its end.
  private func read(_ descriptor: Int32, until deadline: Duration) -> [UInt8]? {
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let left = deadline - Uptime.now()
      guard left > .zero else { return nil }
      let ready = poll(&watched, 1, left.pollMilliseconds)
      if ready == 0 || (ready < 0 && errno == EINTR) { continue }
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0, output.count + count <= outputLimit else { return nil }
      if count == 0 { return output }
      output += buffer[..<count]
    }
  }

  /// Waits for the end of the program without reaping it.
  private static func wait(for child: pid_t, until deadline: Duration) -> Bool {
    while true {
      var info = siginfo_t()
      let result = waitid(P_PID, id_t(child), &info, WEXITED | WNOWAIT | WNOHANG)
      if result == 0, info.si_signo == SIGCHLD { return true }
      guard result == 0 || errno == EINTR, Uptime.now() < deadline else { return false }
      usleep(2000)
    }
  }

  private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + written, bytes.count - written) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      written += count
    }
    return true
  }

  /// Copies texts for C; the caller frees them.
  private static func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }
}
