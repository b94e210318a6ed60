// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import Secrets
import ServerBackends
import TokenDaemon

extension Enroll: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      forbidMemoryDumps()
      overwriteFreedMemory()
      let text = try readURI()
      // Rejects invalid input before the service is contacted.
      try Backends.check(options(text))
      let account = if let done = try throughService(text) { done } else { try await enroll(text) }
      show(account)
    }
  }

  private func enroll(_ text: String) async throws -> AccountResponse {
    guard !askPIN else {
      throw CommandError(.unavailable, "the PIN is typed on the token: start `approval-token serve` first")
    }
    let vault = try state.openVault(creating: true)
    var request = EnrollmentRequest(options(text))
    request.progress = showProgress
    let account = try await Backends(vault).enroll(request)
    requestReload(state)
    return AccountResponse(account)
  }
}
