// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation

/// The result of a finished program.
package struct ProgramOutput: Sendable {
  package let status: Int32
  package let bytes: [UInt8]
  package let errors: String

  package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// Runs a program to its end, or for two minutes: then its status is 124.
package func run(_ program: String, _ arguments: [String], input: [UInt8]? = nil) throws -> ProgramOutput {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
  process.arguments = ["120", program] + arguments
  let (standardInput, output, errors) = (Pipe(), Pipe(), Pipe())
  process.standardInput = input == nil ? FileHandle.nullDevice : standardInput
  process.standardOutput = output
  process.standardError = errors
  try process.run()
  if let input { try standardInput.fileHandleForWriting.write(contentsOf: Data(input)) }
  try standardInput.fileHandleForWriting.close()
  let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
  let complaints = try errors.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return ProgramOutput(
    status: process.terminationStatus, bytes: [UInt8](bytes), errors: String(decoding: complaints, as: UTF8.self))
}

/// A running program whose output is read line by line.
package final class RunningProgram: @unchecked Sendable {
  private let process = Process()
  private let output = Pipe()
  /// Used only by the test that owns the program.
  private var buffer = Data()

  package init(_ program: String, _ arguments: [String], errors: String? = nil) throws {
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    if let errors {
      _ = FileManager.default.createFile(atPath: errors, contents: nil)
      process.standardError = FileHandle(forWritingAtPath: errors)
    } else {
      process.standardError = FileHandle.nullDevice
    }
    try process.run()
  }

  deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

  /// - Returns: nil when the program has closed its output, or has written nothing for a minute.
  package func nextLine() -> String? {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeSubrange(...end)
        return line.hasSuffix("\r") ? String(line.dropLast()) : line
      }
      guard isReadable(output.fileHandleForReading.fileDescriptor, within: .seconds(60)) else { return nil }
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { return nil }
      buffer.append(more)
    }
  }

  package var processIdentifier: Int32 { process.processIdentifier }

  package func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// Kills the program if it has not ended after a minute.
  /// - Returns: the exit status, or the number of the signal that ended it.
  @discardableResult
  package func waitForEnd() -> Int32 {
    let deadline = ContinuousClock.now + .seconds(60)
    while process.isRunning, ContinuousClock.now < deadline { usleep(1000) }
    if process.isRunning { send(SIGKILL) }
    process.waitUntilExit()
    return process.terminationStatus
  }
}
