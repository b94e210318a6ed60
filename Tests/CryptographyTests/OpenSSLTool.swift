// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The `openssl` program in its own directory: an independent implementation for interoperability tests.
final class OpenSSLTool {
  private let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "openssl-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  func write(_ bytes: [UInt8], to name: String) throws { try Data(bytes).write(to: directory.appending(path: name)) }

  func read(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: directory.appending(path: name))) }

  /// - Returns: whether it succeeded.
  func run(_ arguments: String) throws -> Bool {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments.split(separator: " ").map(String.init)
    process.currentDirectoryURL = directory
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus == 0
  }
}
