// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
package import ControlProtocol
import DisplayText
import Glibc
import JSONValues
import MobileAuth

package struct StateOption: ParsableArguments {
  @Option(
    name: .customLong("state"),
    help: ArgumentHelp(
      "Directory with accounts, keys and the audit chain.",
      discussion: """
        Default: $STATE_DIRECTORY, else $XDG_STATE_HOME/approval-token, else ~/.local/state/approval-token. A service \
        that is installed as a unit uses /var/lib/approval-token.
        """,
      valueName: "dir"),
    completion: .directory)
  package var chosen: String?

  package var directory: String { chosen ?? Self.defaultDirectory }

  private static var defaultDirectory: String {
    if let service = environment("STATE_DIRECTORY") { return service }
    if let state = environment("XDG_STATE_HOME") { return state + "/approval-token" }
    return (environment("HOME") ?? "/root") + "/.local/state/approval-token"
  }

  package init() {}

  /// Whether neither the user nor the service manager has named the directory.
  package var isDefault: Bool { chosen == nil && environment("STATE_DIRECTORY") == nil }

  /// Refuses the default directory where a service is installed: it is not the service's, and what a command makes or
  /// misses there is that of another token. A token that is in the default directory already can be used.
  /// - Parameter remedy: what to do for the service.
  package func requireChoice(_ remedy: String) throws(CommandError) {
    guard isDefault, !hasToken, InstalledService.isInstalled, !InstalledService.uses(directory) else { return }
    throw CommandError(
      .usage,
      "the service that is installed here uses \(InstalledService.stateDirectory), not \(directory): \(remedy). For "
        + "another token, name its directory with --state")
  }

  /// Whether the directory has a vault. An empty file is none: it would become a new one.
  private var hasToken: Bool {
    var status = stat()
    return stat(directory + "/vault.sqlite3", &status) == 0 && status.st_size > 0
  }

  package var controlSocket: String { ControlRequest.socket(in: directory) }

  /// What the running service reports. One that hangs is an error.
  /// - Parameter seconds: the time limit.
  package func serviceStatus(within seconds: Int = ControlClient.patience) throws -> ServiceStatus {
    try ControlClient(path: controlSocket).call(.status, ServiceStatus.self, within: seconds)
  }
}

package struct JSONOption: ParsableArguments {
  @Flag(name: .customLong("json"), help: "Print the result as JSON.")
  package var isWanted = false

  package init() {}

  /// Prints `value` as JSON, or the text that `text` makes from it.
  package func print<Value: Encodable>(_ value: Value, text: (Value) -> String) {
    let output =
      isWanted
      ? String(decoding: JSONMessage.encode(value), as: UTF8.self).escapedForDisplay : text(value).sanitizedLines
    if !output.isEmpty { Swift.print(output) }
  }
}

package func environment(_ name: String) -> String? {
  getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}
