// SPDX-License-Identifier: Apache-2.0
import Glibc
package import MobileAuth

/// The directory of the vault and the device secret, and its access checks.
package enum StateDirectory {
  /// Creates the directory if it does not exist, and checks that only this user can enter it.
  package static func prepare(_ directory: String) throws(StateStoreError) {
    guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw systemFault("mkdir \(directory)") }
    try check(directory)
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
