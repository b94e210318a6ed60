// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import ServerBackends
import Vault

extension AccountService {
  /// Gives up the keys of an account, or its push enrollment alone. The server must be reachable.
  func disenroll(_ name: String, pushOnly: Bool) async throws -> AccountResponse {
    let (account, server) = try find(name)
    if service.session?.account == account.id { _ = try await logOut() }
    try await operations.disenroll(account, through: server, pushOnly: pushOnly)
    service.reload()
    return AccountResponse(try operations.account(name))
  }

  /// Enrolls an account again whose keys its server has removed: the PIN proves the user, without an activation code.
  func enrollAgain(_ name: String, _ progress: @escaping Progress) async throws -> AccountResponse {
    let account = try operations.account(name)
    guard account.stage == .mustEnrollAgain else {
      throw AccountError.notEnrollable(account.id, why: "it is enrolled, or was never enrolled completely")
    }
    guard let backend = try operations.backend(of: account) as? any Reenrollment, let pin = account.pin else {
      throw AccountError.notEnrollable(account.id, why: "nothing of it is left here")
    }
    guard hasKeypad else { throw AccountError.noKeypad(account.id) }
    let enrolled = try await service.panelTasks.perform { panel in
      try await pins.enrollAgain(account, at: backend, length: pin.length, on: panel, progress)
    }
    service.reload()
    return AccountResponse(enrolled)
  }
}
