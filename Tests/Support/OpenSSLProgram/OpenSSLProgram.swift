// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation

/// The `openssl` program in its own directory: an independent implementation for interoperability tests.
package final class OpenSSLProgram {
  private let directory: URL

  package init() throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "openssl-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  package func write(_ bytes: [UInt8], to name: String) throws {
    try Data(bytes).write(to: directory.appending(path: name))
  }

  package func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: directory.appending(path: name)))
  }

  /// - Parameter arguments: separated by spaces.
  /// - Returns: whether it succeeded.
  package func run(_ arguments: String) throws -> Bool { try output(of: arguments) != nil }

  /// - Parameter arguments: separated by spaces.
  /// - Returns: what it wrote to standard output; nil when it failed.
  package func output(of arguments: String) throws -> String? {
    let command = ["--chdir", directory.path, "openssl"] + arguments.split(separator: " ").map(String.init)
    let output = try BuiltPrograms.run("/usr/bin/env", command)
    return output.status == 0 ? output.text : nil
  }
}
