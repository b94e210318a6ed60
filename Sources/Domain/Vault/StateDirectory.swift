// SPDX-License-Identifier: Apache-2.0
import Glibc
package import MobileAuth

/// The directory of the vault and the device secret, and its access checks.
package enum StateDirectory {
  /// Creates the directory if it does not exist, and checks that only this user can enter it.
  /// - Parameter makingParents: whether missing directories above it are created, too, which only this user can enter.
  package static func prepare(_ directory: String, makingParents: Bool = false) throws(StateStoreError) {
    for parent in parents(of: directory) where access(parent, F_OK) != 0 && errno == ENOENT {
      guard makingParents else {
        throw .io(call: "mkdir \(directory)", reason: "the directory \(parent) does not exist")
      }
      try make(parent)
    }
    try make(directory)
    try check(directory)
  }

  private static func make(_ directory: String) throws(StateStoreError) {
    guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw systemFault("mkdir \(directory)") }
  }

  /// The paths of the directories above it, from the topmost one.
  private static func parents(of directory: String) -> [String] {
    let last = directory.lastIndex { $0 != "/" } ?? directory.startIndex
    return directory[..<last].indices.filter { directory[$0] == "/" }.map { String(directory[..<$0]) }
      .filter { !$0.isEmpty }
  }

  /// Checks that only this user can enter the directory.
  static func check(_ directory: String) throws(StateStoreError) {
    var status = stat()
    // `stat` follows symbolic links: systemd's DynamicUser= makes /var/lib/<name> a symbolic link.
    guard stat(directory, &status) == 0 else { throw systemFault("stat \(directory)") }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .io(call: directory, reason: "not a directory") }
    guard status.st_uid == geteuid() else {
      throw .io(
        call: directory, reason: "belongs to user \(status.st_uid), this process runs as user \(geteuid())")
    }
    let mode = status.st_mode & 0o7777
    guard mode & 0o077 == 0 else {
      throw .io(
        call: directory, reason: "has mode \(String(mode, radix: 8)): others can enter it; chmod 700 it")
    }
  }

  /// Waits until the directory's entries are durable.
  static func synchronize(_ directory: String) throws(StateStoreError) {
    let descriptor = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw systemFault("open \(directory)") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw systemFault("fsync \(directory)") }
  }

  /// Whether the path exists, even as a broken symbolic link.
  static func exists(_ path: String) throws(StateStoreError) -> Bool {
    var status = stat()
    if lstat(path, &status) == 0 { return true }
    guard errno == ENOENT else { throw systemFault("lstat \(path)") }
    return false
  }
}

/// The error for a system call that has just failed, with the text of `errno`.
func systemFault(_ call: String) -> StateStoreError {
  .io(call: call, reason: String(cString: strerror(errno)))
}
