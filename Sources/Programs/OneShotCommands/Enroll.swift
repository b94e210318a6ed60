// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import ServerBackends
import TokenDaemon

extension Enroll: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      try checkState()
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
        .unavailable, "the activation code is typed on the token: \(InstalledService.start(of: state.directory))")
    }
    guard !askPIN else {
      throw CommandError(
        .unavailable, "the PIN is typed on the token: \(InstalledService.start(of: state.directory))")
    }
    // A vault made by a command would have another device secret than the service's systemd credential.
    guard try state.hasVault && !state.isVaultEmpty || !InstalledService.uses(state.directory) else {
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
