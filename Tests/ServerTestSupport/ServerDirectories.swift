import BuiltPrograms
import Foundation
import Synchronization

/// Directories of servers that tests copy instead of making them. They are removed when this process exits.
enum ServerDirectories {
  private static let kept = Mutex<[String]>([])

  /// What `token-server init` wrote, once.
  private static let initialized = Result {
    let made = path()
    let output = try run(BuiltProgram.path("token-server"), ["init", "--directory", made])
    guard output.status == 0 else { throw Curl.Failure(description: "init: \(output.errors)") }
    keep(made)
    return made
  }

  /// Where no directory is yet.
  static func path() -> String { NSTemporaryDirectory() + "token-server-\(UUID().uuidString)" }

  /// - Returns: a new server's directory, ready to serve. All of them have the same keys and pepper.
  static func new() throws -> String { try copy(of: initialized.get()) }

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

  /// A stopped server's files, with their modes; not its lock, its pipe and its log.
  static func copy(of directory: String) throws -> String {
    let (manager, copy) = (FileManager.default, path())
    try manager.createDirectory(
      atPath: copy, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for name in try manager.contentsOfDirectory(atPath: directory) where !["lock", "doorbell", "log"].contains(name) {
      try manager.copyItem(atPath: "\(directory)/\(name)", toPath: "\(copy)/\(name)")
    }
    return copy
  }
}
