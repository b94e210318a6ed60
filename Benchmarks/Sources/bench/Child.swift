// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

struct BenchError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A child process. Its standard error goes to a file.
final class Child {
  let processID: pid_t
  let started: Instant
  private let output: Int32
  private let program: String
  private var isOver = false

  /// - Parameter environment: variables in addition to those of this process.
  init(_ program: String, _ arguments: [String], log: String, environment: [String: String] = [:]) throws {
    self.program = program
    var pipes: [Int32] = [0, 0]
    pipe(&pipes)
    _ = fcntl(pipes[0], F_SETFD, FD_CLOEXEC)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1)
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    posix_spawn_file_actions_addclose(&actions, pipes[1])
    var words = ([program] + arguments).map { strdup($0) } + [nil]
    // The first of two values of one variable counts.
    var variables = environment.map { strdup("\($0)=\($1)") } + inheritedVariables() + [nil]
    defer {
      (words + variables).forEach { free($0) }
      close(pipes[1])
      posix_spawn_file_actions_destroy(&actions)
    }
    var processID: pid_t = 0
    started = .now
    let code = posix_spawnp(&processID, program, &actions, nil, &words, &variables)
    guard code == 0 else { throw BenchError("cannot run \(program): \(String(cString: strerror(code)))") }
    self.processID = processID
    output = pipes[0]
  }

  deinit {
    end()
    close(output)
  }

  /// The next line of standard output without its line feed.
  func readLine() throws -> String {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(output, &byte, 1) == 1 {
      if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
    throw BenchError("\(program) ended early")
  }

  /// Sends SIGTERM and waits for the end of the process.
  func end() {
    guard !isOver else { return }
    isOver = true
    kill(processID, SIGTERM)
    var status: Int32 = 0
    waitpid(processID, &status, 0)
  }

  private func readAll() -> [UInt8] {
    var all: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(output, &chunk, chunk.count)
      if count <= 0 { return all }
      all += chunk[..<count]
    }
  }

  /// Runs a command until it ends.
  static func run(_ program: String, _ arguments: [String], log: String) throws -> [UInt8] {
    let child = try Child(program, arguments, log: log)
    let output = child.readAll()
    var status: Int32 = 0
    waitpid(child.processID, &status, 0)
    child.isOver = true
    guard status == 0 else { throw BenchError("\(program) \(arguments.first ?? "") failed, see \(log)") }
    return output
  }
}

/// Copies of this process's variables.
private func inheritedVariables() -> [UnsafeMutablePointer<CChar>?] {
  var copies: [UnsafeMutablePointer<CChar>?] = []
  while let variable = environ[copies.count] { copies.append(strdup(variable)) }
  return copies
}
