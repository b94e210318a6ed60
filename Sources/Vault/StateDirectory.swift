import Glibc
import MobileAuth

/// The directory that holds the vault and the device secret, and what may be believed about it.
enum StateDirectory {
  /// Makes the directory if it is not there, and checks that nobody else can enter it.
  static func prepare(_ directory: String) throws(CustodyFault) {
    guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw systemFault("mkdir \(directory)") }
    try check(directory)
  }

  /// Checks that nobody else can enter the directory.
  static func check(_ directory: String) throws(CustodyFault) {
    var status = stat()
    // Follows symbolic links: systemd's DynamicUser= makes /var/lib/<name> one.
    guard stat(directory, &status) == 0 else { throw systemFault("stat \(directory)") }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .storage("\(directory) is not a directory") }
    guard status.st_uid == geteuid() else {
      throw .storage("\(directory) belongs to user \(status.st_uid), this process runs as user \(geteuid())")
    }
    let mode = status.st_mode & 0o7777
    guard mode & 0o077 == 0 else {
      throw .storage("\(directory) has mode \(String(mode, radix: 8)): others can enter it; chmod 700 it")
    }
  }

  /// Waits until the directory's entries are on the card.
  static func synchronize(_ directory: String) throws(CustodyFault) {
    let descriptor = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw systemFault("open \(directory)") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw systemFault("fsync \(directory)") }
  }

  /// Whether something has this path, even if it is a symbolic link to nowhere.
  static func exists(_ path: String) throws(CustodyFault) -> Bool {
    var status = stat()
    if lstat(path, &status) == 0 { return true }
    guard errno == ENOENT else { throw systemFault("lstat \(path)") }
    return false
  }
}

/// The system call that just failed, and why.
func systemFault(_ call: String) -> CustodyFault {
  .storage("\(call): \(String(cString: strerror(errno)))")
}
