// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import Glibc
import MobileAuth
import ServerBackends
import TokenDaemon

extension Enroll: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      let text = try readURI()
      // Rejects invalid input before the service is contacted.
      if server == nil { try Backends.check(options(text)) }
      let made = if let done = try throughService(text) { done } else { try await enroll(text) }
      show(made)
    }
  }

  private func enroll(_ text: String) async throws -> EnrollmentResponse {
    guard server == nil else {
      throw CommandError(
        .unavailable, "the activation code is typed on the token: start `approval-token serve` first")
    }
    guard !askPIN else {
      throw CommandError(.unavailable, "the PIN is typed on the token: start `approval-token serve` first")
    }
    guard try state.hasVault && !state.isVaultEmpty || !isStateOfService(state.directory) else {
      throw CommandError(
        .unavailable,
        "only the service, with its device secret, can make the vault in \(state.directory): run `systemctl start "
          + "approval-token`, then enroll")
    }
    let vault = try state.openVault(creating: true)
    var request = EnrollmentRequest(options(text))
    request.progress = showProgress
    let response = try await Backends(vault).enrollWhenConnected(request)
    if response.account != nil { requestReload(state) }
    return response
  }
}

/// Whether the directory is the one of a service that is installed here. A vault made there by a command would have
/// another device secret than the service's systemd credential.
/// - Parameter root: where the file system begins.
func isStateOfService(_ directory: String, root: String = "") -> Bool {
  canonical(directory) == canonical("/var/lib/approval-token")
    && ["/usr/lib", "/lib", "/etc"].contains {
      access("\(root)\($0)/systemd/system/approval-token.service", F_OK) == 0
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
