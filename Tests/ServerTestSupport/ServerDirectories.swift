// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Synchronization

/// Directories of servers, which tests copy instead of initializing new ones. Removed when this process exits.
package enum ServerDirectories {
  private static let kept = Mutex<[String]>([])

  /// The directory of one `token-server init` without a PIN, with the user alice.
  private static let initialized = Result {
    let made = path()
    for command in [["init", "--no-pin"], ["user", "add", "alice"]] {
      let output = try run(BuiltProgram.path("token-server"), command + ["--directory", made])
      guard output.status == 0 else { throw Curl.CurlError(description: "\(command): \(output.errors)") }
    }
    keep(made)
    return made
  }

  /// Returns the path of a new directory, which does not exist yet.
  static func path() -> String { NSTemporaryDirectory() + "token-server-\(UUID().uuidString)" }

  /// - Returns: a new server's directory, ready to serve. All of them have the same keys and pepper.
  package static func new() throws -> String { try copy(of: initialized.get()) }

  /// Removes the directory when this process exits.
  static func keep(_ directory: String) {
    kept.withLock { paths in
      if paths.isEmpty { atexit { ServerDirectories.removeKept() } }
      paths.append(directory)
    }
  }

  private static func removeKept() {
    for path in kept.withLock({ $0 }) { try? FileManager.default.removeItem(atPath: path) }
  }

  /// Copies the files of a stopped server with their modes, without the lock, the pipe and the log.
  /// - Returns: the path of the copy.
  static func copy(of directory: String) throws -> String {
    let (manager, copy) = (FileManager.default, path())
    try manager.createDirectory(
      atPath: copy, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for name in try manager.contentsOfDirectory(atPath: directory) where !["lock", "wake.pipe", "log"].contains(name) {
      try manager.copyItem(atPath: "\(directory)/\(name)", toPath: "\(copy)/\(name)")
    }
    return copy
  }
}
