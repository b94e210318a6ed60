// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The service that is installed here as a unit of systemd, with a user and a state directory of its own.
package enum InstalledService {
  package static let stateDirectory = "/var/lib/approval-token"

  /// Where the file system with its unit begins.
  @TaskLocal package static var root: String = ""

  /// A masked unit, a symbolic link to `/dev/null`, is none: it also remains after the removal of the package. The
  /// administrator's file or link counts before that of the package.
  package static var isInstalled: Bool {
    let units = ["/etc", "/usr/lib", "/lib"].map { "\(root)\($0)/systemd/system/approval-token.service" }
    return units.first(where: exists).map(isRegularFile) ?? false
  }

  /// Whether the directory is the one of a service that is installed here.
  package static func uses(_ directory: String) -> Bool {
    isInstalled && canonical(directory) == canonical(stateDirectory)
  }

  /// What starts the service with this state directory, for messages.
  package static func start(of directory: String) -> String {
    if uses(directory) { return "run `systemctl start approval-token`" }
    let start = "start `approval-token serve`"
    guard isInstalled else { return start }
    return "the service that is installed here uses another directory: \(call("…")); for this one, \(start)"
  }

  /// How a command is run for it, for messages.
  package static func call(_ command: String) -> String {
    "`runuser -u approval-token -- approval-token \(command) --state \(stateDirectory)`"
  }
}

/// Whether there is one, or a symbolic link, wherever that leads.
private func exists(_ path: String) -> Bool {
  var status = stat()
  return lstat(path, &status) == 0
}

/// Whether there is one, also behind symbolic links.
private func isRegularFile(_ path: String) -> Bool {
  var status = stat()
  return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
}

/// The path without symbolic links and slashes at its end; only without those slashes if it does not exist.
private func canonical(_ path: String) -> String {
  guard let resolved = realpath(path, nil) else { return String(path.trimmingSlashes) }
  defer { free(resolved) }
  return String(cString: resolved)
}

extension String {
  fileprivate var trimmingSlashes: Substring {
    var rest = self[...]
    while rest.count > 1, rest.last == "/" { rest.removeLast() }
    return rest
  }
}
