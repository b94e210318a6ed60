// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Glibc

/// A run of `constant-time-probe` with valgrind.
struct ProbeRun {
  let exitCode: Int32
  /// The output of the probe.
  let output: [String]
  /// The output of valgrind.
  let log: String

  /// The exit code of valgrind after a finding.
  static let foundSomething: Int32 = 99

  struct ProbeError: Error { let why: String }

  /// - Parameter mode: the probe's argument.
  init(_ mode: String) throws {
    guard access(Self.program, X_OK) == 0 else {
      throw ProbeError(
        why: "\(Self.program) is missing: scripts/test constant-time builds it")
    }
    var name = Array("/tmp/constant-time-XXXXXX".utf8CString)
    let descriptor = mkstemp(&name)
    guard descriptor >= 0 else { throw ProbeError(why: "mkstemp: errno \(errno)") }
    defer { unlink(name) }
    close(descriptor)
    let file = String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)

    let command =
      "timeout 200 valgrind --error-exitcode=\(Self.foundSomething) --error-limit=no --log-file=\(file) '\(Self.program)' \(mode)"
    guard let pipe = popen(command, "re") else { throw ProbeError(why: "popen: errno \(errno)") }
    output = Self.text(of: pipe).split(separator: "\n").map(String.init)
    let status = pclose(pipe)
    guard status & 0x7F == 0 else { throw ProbeError(why: "\(command): ended by signal \(status & 0x7F)") }
    exitCode = status >> 8 & 0xFF
    guard let stream = fopen(file, "re") else { throw ProbeError(why: "cannot read \(file)") }
    defer { fclose(stream) }
    log = Self.text(of: stream)
  }

  /// The number of errors that valgrind reports; nil if it did not complete.
  var errors: Int? {
    log.split(separator: "\n").last { $0.contains("ERROR SUMMARY: ") }?
      .split(separator: " ").dropFirst(3).first.flatMap { Int($0) }
  }

  /// The reported places, each with its kind and its stack trace.
  var findings: [String] {
    log.split(separator: "\n").split { $0.hasSuffix("== ") }.map { $0.joined(separator: "\n") }
      .filter { $0.contains("uninitialised value(s)") || $0.contains("uninitialised value of size") }
  }

  private static func text(of stream: UnsafeMutablePointer<FILE>) -> String {
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while case let count = fread(&chunk, 1, chunk.count, stream), count > 0 { text += chunk[..<count] }
    return String(decoding: text, as: UTF8.self)
  }

  /// The program, built for release regardless of the configuration of the tests.
  private static let program: String = {
    if let named = getenv("CONSTANT_TIME_PROBE") { return String(cString: named) }
    return "/" + (BuiltProgram.directory.dropLast() + ["release", "constant-time-probe"]).joined(separator: "/")
  }()
}
