// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The service that is installed here as a unit of systemd, with a user and a state directory of its own.
package enum InstalledService {
  package static let stateDirectory = "/var/lib/approval-token"

  /// Where the file system with its unit begins.
  @TaskLocal package static var root: String = ""

  package static var isInstalled: Bool {
    ["/usr/lib", "/lib", "/etc"].contains {
      access("\(root)\($0)/systemd/system/approval-token.service", F_OK) == 0
    }
  }

  /// Whether the directory is the one of a service that is installed here.
  package static func uses(_ directory: String) -> Bool {
    isInstalled && canonical(directory) == canonical(stateDirectory)
  }

  /// What starts the service with this state directory, for messages.
  package static func start(of directory: String) -> String {
    if uses(directory) { return "run `systemctl start approval-token`" }
    let other = isInstalled ? "; the service that is installed here uses another directory: \(call("…"))" : ""
    return "start `approval-token serve`" + other
  }

  /// How a command is run for it, for messages.
  package static func call(_ command: String) -> String {
    "`runuser -u approval-token -- approval-token \(command) --state \(stateDirectory)`"
  }
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
